"""Words of Korean text for a search index: a particle at the end does not hide the word."""

import re

LONGEST_ENDING = 4


def words(text: str) -> list[str]:
    """The words of a text, each also without its last syllables: 미분을 is found by 미분.

    >>> words("미분을 jit으로")
    ['미분을', '미분', 'jit으로', 'jit', '으로']
    """
    found = []
    for word in re.findall(r"\w+", text):
        found.append(word)
        for run in re.findall(r"[가-힣]+|[^가-힣]+", word):
            shortest = max(2, len(run) - LONGEST_ENDING) if "가" <= run[0] <= "힣" else len(run)
            found += [run[:end] for end in range(len(run), shortest - 1, -1) if run[:end] != word]
    return found
