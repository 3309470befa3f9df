"""Sentences, bare values, numbers, dates and stems of English, Vietnamese and Chinese texts."""
