"""The back end `openai`: every server that speaks the OpenAI chat API."""
