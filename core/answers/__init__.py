"""What became of the questions: answered, correct, abstained, empty, failed."""
