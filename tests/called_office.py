"""The same company beside a forge that calls: nobody looks there unless something happened."""

from tests import change_office


def main() -> None:
    change_office.main(600.0)
