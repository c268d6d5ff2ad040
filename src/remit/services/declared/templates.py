"""Companies to begin with: documents for `apply`, each a team below the root agent."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Template:
    name: str
    label: str
    #: Its members, in a sentence.
    about: str
    agents: tuple[dict[str, str], ...] = ()

    def document(self, root: str) -> dict[str, object]:
        """The document for `apply`; agents without a boss report to the root agent."""
        return {"agents": [{"reportsTo": root, **agent} for agent in self.agents]}


def _agent(name: str, role: str, title: str, capabilities: str, boss: str = "") -> dict[str, str]:
    entry = {"name": name, "role": role, "title": title, "capabilities": capabilities}
    return {**entry, "reportsTo": boss} if boss else entry


TEMPLATES: Final = (
    Template("root", "A root agent alone", "It hires whom it needs, and you approve each hire."),
    Template(
        "software",
        "Software team",
        "A technical lead with an engineer, a tester and a designer.",
        (
            _agent("lead", "cto", "Technical lead", "Plans software, reviews it, and delegates."),
            _agent("engineer", "engineer", "Engineer", "Writes and changes code.", "lead"),
            _agent("tester", "qa", "Tester", "Tries what was built and says what fails.", "lead"),
            _agent("designer", "designer", "Designer", "Designs pages and their words.", "lead"),
        ),
    ),
    Template(
        "research",
        "Research desk",
        "An editor with a researcher, a writer and a fact checker.",
        (
            _agent("editor", "pm", "Editor", "Decides what is looked into, and edits it."),
            _agent(
                "researcher", "researcher", "Researcher", "Finds sources and reads them.", "editor"
            ),
            _agent("writer", "general", "Writer", "Writes plainly from what was found.", "editor"),
            _agent(
                "checker", "qa", "Fact checker", "Checks each claim against its source.", "editor"
            ),
        ),
    ),
    Template(
        "operations",
        "Operations",
        "An operator for machines and one for security.",
        (
            _agent("operator", "devops", "Operator", "Runs systems and mends what breaks."),
            _agent("guard", "security", "Security", "Looks for weaknesses and sees to them."),
        ),
    ),
)
