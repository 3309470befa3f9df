"""Glue between the pages and the engine: the only package besides pages that imports streamlit."""
