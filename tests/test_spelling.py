"""Spelling of texts for whoever decides: every character without a shape is spelled out."""

import re
import unicodedata

import pytest

from remit.model.spelling import spelled

#: Default_Ignorable_Code_Point, as DerivedCoreProperties.txt of Unicode has it.
IGNORABLE = """
    00AD 034F 061C 115F-1160 17B4-17B5 180B-180D 180E 180F 200B-200F 202A-202E 2060-2064 2065
    2066-206F 3164 FE00-FE0F FEFF FFA0 FFF0-FFF8 1BCA0-1BCA3 1D173-1D17A E0000 E0001 E0002-E001F
    E0020-E007F E0080-E00FF E0100-E01EF E01F0-E0FFF
"""
#: Words in the names of characters that may have no shape.
SHAPELESS = re.compile(
    r"\b(FILLER|BLANK|INVISIBLE|NULL|ZERO WIDTH|EMPTY|SPACE|\w*JOINER|SELECTOR|NO-BREAK)\b"
)
#: Characters with such a name that have a shape, and the space, which is shown as it is.
SHAPED = """
    0020 06EA 06EB 2205 2400 2420 2422 29B0 29B1 29B2 29B3 29B4 303F A8F9 10AF6 1144E 11945
    11C44 11C45 1DA7F 1DA80 1F5C5 1F5C6 1F5C7 1F5CB 1F5CC 1F5CD 1FAB9
"""


def codes(ranges: str) -> set[int]:
    ends = [[int(end, 16) for end in span.split("-")] for span in ranges.split()]
    return {code for span in ends for code in range(span[0], span[-1] + 1)}


@pytest.fixture(scope="module")
def kept() -> set[int]:
    """All of Unicode that is shown as it is."""
    return {code for code in range(0x110000) if spelled(chr(code)) == chr(code)}


@pytest.mark.requirement("FX-61")
def test_every_default_ignorable_character_is_spelled_out(kept: set[int]) -> None:
    assert len(codes(IGNORABLE)) == 4174  # as the file of Unicode counts them
    assert codes(IGNORABLE) & kept == set()


@pytest.mark.requirement("FX-61")
def test_every_character_whose_name_says_that_it_is_blank_is_spelled_out(kept: set[int]) -> None:
    """A character that a newer Python knows fails here until it is judged."""
    blank = {code for code in kept if SHAPELESS.search(unicodedata.name(chr(code), ""))}
    assert {f"{code:04X}" for code in blank - codes(SHAPED)} == set()


@pytest.mark.requirement("FX-61")
def test_no_space_mark_of_direction_or_unassigned_character_is_kept(kept: set[int]) -> None:
    hidden = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"}
    assert {chr(code) for code in kept if unicodedata.category(chr(code)) in hidden} == {" ", "\t"}


@pytest.mark.parametrize(
    "text", ["naïve e\u0301", "မြန်မာ", "ខ្មែរ", "नमस्ते", "שָׁלוֹם", "العَرَبِيَّة", "日本語 👍", "한국어"]
)
def test_words_of_people_are_kept(text: str) -> None:
    """Accents, vowels and stacked letters belong to the words."""
    assert spelled(text) == text
