"""Search in Korean text: a particle at the end of a word does not hide the word."""

import re

from sphinx.search import SearchLanguage  # pyright: ignore[reportMissingImports]

HANGUL = re.compile(r"[가-힣]+")
LONGEST_PARTICLE = 4


class Korean(SearchLanguage):
    """Index each word also without its last syllables: 미분을 is found by 미분."""

    lang = "ko"
    language_name = "Korean"
    stopwords: set[str] = set()

    def split(self, input: str) -> list[str]:
        words = []
        for word in re.findall(r"\w+", input):
            words.append(word)
            for run in HANGUL.findall(word):
                shortest = max(2, len(run) - LONGEST_PARTICLE)
                words += [run[:end] for end in range(shortest, len(run) + 1)]
        return words

    def word_filter(self, stemmed_word: str) -> bool:
        return len(stemmed_word) > 1
