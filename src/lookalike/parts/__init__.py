"""Items of many signatures each, found by the parts of a query that are near theirs."""
