"""Leadline's engine: pure Python, no user interface.

Importing it is cheap: no torch, no transformers, no streamlit. Heavy libraries are
imported inside the functions that need them.
"""
