"""A collection of a service, used as one here."""
