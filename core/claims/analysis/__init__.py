"""The claims of a whole run: their tables, and everything that follows from them."""
