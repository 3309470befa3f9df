"""What every peer is given: two questions with passages, answers and correct answers."""

QUESTIONS = ["When was the canal opened?", "How long is the canal?"]
PASSAGES = [
    ["The canal was opened in 1893.", "Coffee grows on the slopes; it is \"picked\" by hand, in May."],
    ["The canal is 6.4 km long.\nIts banks are steep.", "Kênh đào dài 6,4 km."],
]  # fmt: skip
ANSWERS = ["It was opened in 1893.", "6.4 km"]
CORRECT = ["in 1893", "6.4 km"]


def reply_to(prompt: str) -> str:
    """Return what the model answers: it looks for the question in its prompt."""
    return next(answer for question, answer in zip(QUESTIONS, ANSWERS, strict=True) if question in prompt)
