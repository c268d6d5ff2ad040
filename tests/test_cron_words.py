"""Repetitions in words."""

import pytest

from remit.entrypoints.web.text.cron_words import told


@pytest.mark.requirement("FX-49")
@pytest.mark.parametrize(
    ("cron", "words"),
    [
        ("0 9 * * *", "daily at 09:00"),
        ("30 17 * * 1-5", "weekdays at 17:30"),
        ("0 9 * * 1,7", "Mondays, Sundays at 09:00"),
        ("0 8 1 * *", "day 1 of each month at 08:00"),
        ("*/15 * * * *", "every 15 minutes"),
        ("5 * * * *", "every hour at :05"),
        ("0 9 1 * 1", "0 9 1 * 1"),
        ("0 9 * 1 *", "0 9 * 1 *"),
        ("0 9-17 * * *", "0 9-17 * * *"),
        ("0 9 * * 8", "0 9 * * 8"),
        ("@daily", "@daily"),
    ],
)
def test_usual_repetitions_are_told_in_words_and_others_as_they_are(cron: str, words: str) -> None:
    assert told(cron, "UTC") == f"{words} (UTC)"
