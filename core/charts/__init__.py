"""Figures, one module each, in a folder per diagnostic: from a result to a plotly figure."""
