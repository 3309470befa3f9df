"""Where answers are lost, and what each fix brings."""
