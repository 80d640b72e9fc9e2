"""Who may come in, and with how much: keys, hosts, sizes, times."""
