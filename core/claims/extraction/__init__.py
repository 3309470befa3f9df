"""What the step asks about: texts of a question, comparison with its references, and the rows that result."""
