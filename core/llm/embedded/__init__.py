"""The back end `embedded`: a Hugging Face model in this process."""
