"""Reading web pages: how quickly, and whether what is read is the article."""
