"""What if the prompt had been another one: for one question, and for all questions of a run."""
