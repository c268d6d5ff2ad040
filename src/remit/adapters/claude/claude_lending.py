"""Credentials lent to Claude Code: a key of Anthropic or a gateway, or the variables of a cloud."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from remit.adapters.setup.lending import Environment, Lent, broken_file, is_on, network, pick

KEYS: Final = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
ADDRESS: Final = "ANTHROPIC_BASE_URL"
#: Variables with the names of models, which differ at gateways and clouds.
_MODELS: Final = (
    "ANTHROPIC_MODEL",
    "ANTHROPIC_SMALL_FAST_MODEL",
    "ANTHROPIC_DEFAULT_OPUS_MODEL",
    "ANTHROPIC_DEFAULT_SONNET_MODEL",
    "ANTHROPIC_DEFAULT_HAIKU_MODEL",
)
_HEADERS: Final = "ANTHROPIC_CUSTOM_HEADERS"


@dataclass(frozen=True)
class Cloud:
    """A cloud that serves Claude, chosen by a variable."""

    name: str
    flag: str
    keys: Sequence[str]
    beside: Sequence[str]
    #: Requirements, all of which must be met: each by one of its alternatives, a set of variables.
    needed: Sequence[Sequence[tuple[str, ...]]]
    #: Variable with which a gateway supplies the credential, so that no key is needed.
    without_key: str
    advice: str


CLOUDS: Final = (
    Cloud(
        "Bedrock",
        "CLAUDE_CODE_USE_BEDROCK",
        (
            "AWS_BEARER_TOKEN_BEDROCK",
            "AWS_ACCESS_KEY_ID",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
        ),
        (
            "AWS_REGION",
            "AWS_DEFAULT_REGION",
            "ANTHROPIC_BEDROCK_BASE_URL",
            "ANTHROPIC_SMALL_FAST_MODEL_AWS_REGION",
        ),
        (
            [("AWS_BEARER_TOKEN_BEDROCK",), ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")],
            [("AWS_REGION",), ("AWS_DEFAULT_REGION",)],
        ),
        "CLAUDE_CODE_SKIP_BEDROCK_AUTH",
        "Profiles and logins of the aws program are not lent; what "
        "`aws configure export-credentials --format env` prints for one is, if it is set before "
        "Remit is started.",
    ),
    Cloud(
        "Vertex",
        "CLAUDE_CODE_USE_VERTEX",
        (),
        (
            "GOOGLE_APPLICATION_CREDENTIALS",
            "GOOGLE_CLOUD_PROJECT",
            "GCLOUD_PROJECT",
            "CLOUD_ML_REGION",
            "ANTHROPIC_VERTEX_PROJECT_ID",
            "ANTHROPIC_VERTEX_BASE_URL",
        ),
        (
            [("GOOGLE_APPLICATION_CREDENTIALS",)],
            [("ANTHROPIC_VERTEX_PROJECT_ID",)],
            [("CLOUD_ML_REGION",)],
        ),
        "CLAUDE_CODE_SKIP_VERTEX_AUTH",
        "Logins of the gcloud program are not lent; the key file of a service account is.",
    ),
    Cloud(
        "Foundry",
        "CLAUDE_CODE_USE_FOUNDRY",
        ("ANTHROPIC_FOUNDRY_API_KEY",),
        ("ANTHROPIC_FOUNDRY_RESOURCE", "ANTHROPIC_FOUNDRY_BASE_URL"),
        (
            [("ANTHROPIC_FOUNDRY_API_KEY",)],
            [("ANTHROPIC_FOUNDRY_RESOURCE",), ("ANTHROPIC_FOUNDRY_BASE_URL",)],
        ),
        "CLAUDE_CODE_SKIP_FOUNDRY_AUTH",
        "Logins of the az program are not lent; a key of the resource is.",
    ),
)
#: Every secret that may be lent.
EVERY_KEY: Final = (*KEYS, *(name for cloud in CLOUDS for name in cloud.keys), _HEADERS)


def lending(settings: Any, environment: Environment) -> Lent:
    """Return what a run is lent; one with its own key or address gets neither the worker's address
    nor its cloud."""
    beside = network(environment)
    problem = broken_file(environment)
    if settings.secret_ref:
        return Lent({}, beside, *problem)
    own = bool(settings.base_url) or bool({*KEYS, ADDRESS}.intersection(settings.env))
    if not own:
        for cloud in CLOUDS:
            if is_on({**environment, **settings.env}, cloud.flag):
                return _of_cloud(cloud, {**environment, **settings.env}, beside, problem)
    keys = pick(environment, KEYS)
    if not own:
        beside |= pick(environment, [ADDRESS, *_MODELS])
        if keys or ADDRESS in beside:
            keys |= pick(environment, [_HEADERS])
    return Lent(keys, beside, *problem)


def _of_cloud(
    cloud: Cloud, around: Environment, beside: dict[str, str], problem: tuple[str, str]
) -> Lent:
    beside |= {cloud.flag: "1", **pick(around, [*cloud.beside, *_MODELS])}
    regions = [name for name in around if name.startswith("VERTEX_REGION_")]
    if cloud.name == "Vertex":
        beside |= pick(around, regions)
    if is_on(around, cloud.without_key):
        beside[cloud.without_key] = "1"
        return Lent(pick(around, cloud.keys), beside, *problem)
    lacking = [ways for ways in cloud.needed if not any(all(map(around.get, way)) for way in ways)]
    if lacking and not problem[0]:
        wanted = "; ".join(" or ".join(" and ".join(way) for way in ways) for ways in lacking)
        problem = (
            f"{cloud.flag} is set, but what {cloud.name} needs is not there to be lent: {wanted}.",
            f"Set it for the worker, or unset {cloud.flag}. {cloud.advice}",
        )
    return Lent(pick(around, cloud.keys), beside, *problem)


def counted(environment: Environment, lent: Lent) -> dict[str, str]:
    """Return the environment without the flags of unused clouds."""
    unused = {cloud.flag for cloud in CLOUDS} - set(lent.beside)
    return {name: value for name, value in environment.items() if name not in unused}
