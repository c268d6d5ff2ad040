"""A company: the tenant that all other rows belong to."""

from dataclasses import dataclass

from remit.clock import HOUR, Micros
from remit.errors import BadInput
from remit.ids import CompanyId
from remit.model.messaging.confirmation import MailDecisions
from remit.model.messaging.mail import Messaging
from remit.model.text import clean_line

DEFAULT_REVIEW_HOURS = "1, 4, 24"


@dataclass(frozen=True, slots=True)
class Company:
    id: CompanyId
    name: str
    created_at: Micros
    messaging: Messaging = Messaging.CHAIN
    #: Whether a hire needs a person's approval.
    require_board_approval_for_new_agents: bool = True
    #: Whether a configuration that an agent proposes needs a person's approval.
    require_approval_for_config_changes: bool = True
    #: Default model of agents that agents create.
    chat_llm_provider: str | None = None
    chat_llm_model: str | None = None
    #: Hours after which an outcome without progress is reviewed again, such as "1, 4, 24".
    review_hours: str = DEFAULT_REVIEW_HOURS
    #: JSON text: the permission levels that the board changed.
    permission_policy: str = "{}"
    #: JSON text: the limits that were set; see `model/execution/limit.py`.
    limits: str = "{}"
    #: Committer and co-authors of its agents' commits: `Name <address>`; None: Remit, nobody.
    commit_committer: str | None = None
    commit_co_authors: str | None = None
    #: Name of the secret with the key that signs commits.
    commit_signing: str | None = None
    #: Whether decisions by e-mail wait for a confirmation.
    mail_decisions: MailDecisions = MailDecisions.CONFIRM


LONGEST_NAME = 100
#: Longest name of a model or a provider.
LONGEST_MODEL = 100
MOST_REVIEWS = 6
LONGEST_REVIEW = 720


def review_hours(text: object) -> str:
    """Validate whole hours, separated by commas or blanks; an empty text is the default."""
    words = clean_line(text, "reviewHours", longest=100, empty_ok=True).replace(",", " ").split()
    valid = all(
        word.isascii() and word.isdecimal() and len(word) <= 3 and 1 <= int(word) <= LONGEST_REVIEW
        for word in words
    )
    if not valid or len(words) > MOST_REVIEWS:
        raise BadInput(
            f"reviewHours: must be at most {MOST_REVIEWS} numbers of hours from 1 to "
            f"{LONGEST_REVIEW}.",
            f"Write something like {DEFAULT_REVIEW_HOURS}.",
        )
    return ", ".join(str(int(word)) for word in words) or DEFAULT_REVIEW_HOURS


def reviews(company: Company) -> tuple[Micros, ...]:
    """Return the pauses before each review of an outcome that does not move."""
    return tuple(int(word) * HOUR for word in company.review_hours.split(", "))


def company_name(text: object) -> str:
    return clean_line(text, "name", longest=LONGEST_NAME)
