"""An embedder without a model: words hashed into a vector. Equal words, equal direction."""

import zlib

import numpy as np

from core.text import words


class HashingEmbedder:
    """Counts the words of a text into 256 places, and its own calls."""

    def __init__(self):
        self.batches = []

    def embed(self, texts):
        self.batches.append(len(texts))
        vectors = np.zeros((len(texts), 256), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in words(text):
                vectors[row, zlib.crc32(word.encode()) % 256] += 1
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
