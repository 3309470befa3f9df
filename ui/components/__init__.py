"""What Streamlit has no element for: one folder per component, with its style and its script beside it."""
