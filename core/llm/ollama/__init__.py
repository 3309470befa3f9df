"""The back end `ollama`: models of an Ollama server."""
