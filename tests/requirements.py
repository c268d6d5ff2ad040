"""What Remit has to do, row by row, and the tests that show it.

A row names its tests, or says with which part of the product it arrives. `test_requirements.py`
keeps the table and the tests in agreement.
"""

from dataclasses import dataclass

FEDERATION = "arrives with links between instances"

# How many rows each prefix has; they are numbered from 1 without a gap.
TOTALS = {"PC": 80, "AG": 121, "AW": 29, "HH": 44, "HB": 62, "BX": 20}


@dataclass(frozen=True)
class Row:
    """One testable statement. A test is named `tests/test_x.py::test_name`."""

    id: str
    statement: str
    tests: tuple[str, ...] = ()
    deferred: str = ""


ROWS = (
    Row(
        "PC-01",
        "a company stores whether a hire needs the board",
        tests=(
            "tests/test_hiring.py::test_a_new_company_wants_to_be_asked_until_it_says_otherwise",
        ),
    ),
    Row(
        "PC-02",
        "a new company needs the board for a hire unless told otherwise",
        tests=(
            "tests/test_http_governance.py::test_a_company_asks_before_hires_until_its_settings_say_otherwise",
            "tests/test_hiring.py::test_a_new_company_wants_to_be_asked_until_it_says_otherwise",
        ),
    ),
    Row(
        "PC-03",
        "that setting changes in the advanced settings and nowhere else",
        tests=(
            "tests/test_web_settings.py::test_the_switch_is_on_no_other_page",
            "tests/test_http_governance.py::test_a_company_asks_before_hires_until_its_settings_say_otherwise",
            "tests/test_hiring.py::test_a_new_company_wants_to_be_asked_until_it_says_otherwise",
        ),
    ),
    Row(
        "PC-04",
        "that setting is in the model, the validation and the API",
        tests=(
            "tests/test_http_governance.py::test_a_company_asks_before_hires_until_its_settings_say_otherwise",
            "tests/test_hiring.py::test_a_new_company_wants_to_be_asked_until_it_says_otherwise",
        ),
    ),
    Row(
        "PC-05",
        "an agent's permissions are a JSON object, empty at first",
        tests=(
            "tests/test_permissions.py::test_by_default_the_ceo_may_create_agents_and_nobody_else",
        ),
    ),
    Row(
        "PC-06",
        "by default only the CEO may hire",
        tests=(
            "tests/test_permissions.py::test_by_default_the_ceo_may_create_agents_and_nobody_else",
            "tests/test_authority_governance.py::test_hiring_permitting_and_reading_follow_the_rules_in_every_case",
        ),
    ),
    Row(
        "PC-07",
        "hiring is the only permission of this kind",
        tests=(
            "tests/test_http_governance.py::test_the_permissions_route_takes_exactly_one_key",
            "tests/test_permissions.py::test_there_is_one_permission_and_it_is_a_boolean",
        ),
    ),
    Row(
        "PC-08",
        "the board edits the permissions of any agent",
        tests=(
            "tests/test_http_governance.py::test_the_permissions_route_takes_exactly_one_key",
            "tests/test_permissions.py::test_the_board_and_the_ceo_edit_permissions_and_nobody_else",
        ),
    ),
    Row(
        "PC-09",
        "the CEO edits permissions in its own company only",
        tests=(
            "tests/test_http_governance.py::test_the_permissions_route_takes_exactly_one_key",
            "tests/test_permissions.py::test_the_board_and_the_ceo_edit_permissions_and_nobody_else",
        ),
    ),
    Row(
        "PC-10",
        "other agents edit no permissions, even if they may hire",
        tests=(
            "tests/test_http_governance.py::test_the_permissions_route_takes_exactly_one_key",
            "tests/test_permissions.py::test_the_board_and_the_ceo_edit_permissions_and_nobody_else",
            "tests/test_authority_governance.py::test_hiring_permitting_and_reading_follow_the_rules_in_every_case",
        ),
    ),
    Row(
        "PC-11",
        "the permissions route takes the hiring permission and no other key",
        tests=(
            "tests/test_http_governance.py::test_the_permissions_route_takes_exactly_one_key",
            "tests/test_permissions.py::test_there_is_one_permission_and_it_is_a_boolean",
        ),
    ),
    Row(
        "PC-12",
        "one check says who may hire in which company",
        tests=(
            "tests/test_http_governance.py::test_hires_are_for_the_board_and_for_who_may",
            "tests/test_hiring.py::test_only_who_may_create_agents_hires_for_a_post",
            "tests/test_create_agent.py::test_who_may_not_create_agents_is_refused_without_asking",
            "tests/test_authority_governance.py::test_hiring_permitting_and_reading_follow_the_rules_in_every_case",
        ),
    ),
    Row(
        "PC-13",
        "one check says who may edit permissions",
        tests=(
            "tests/test_http_governance.py::test_the_permissions_route_takes_exactly_one_key",
            "tests/test_permissions.py::test_the_board_and_the_ceo_edit_permissions_and_nobody_else",
            "tests/test_authority_governance.py::test_hiring_permitting_and_reading_follow_the_rules_in_every_case",
        ),
    ),
    Row(
        "PC-14",
        "an agent can be pending approval, a state without operation",
        tests=("tests/test_limbo.py::test_it_is_a_real_agent_that_everybody_sees",),
    ),
    Row(
        "PC-15",
        "a pending agent is in the tree and can be inspected",
        tests=(
            "tests/test_http_governance.py::test_an_agent_in_limbo_is_seen_and_every_door_is_shut",
            "tests/test_limbo.py::test_it_is_a_real_agent_that_everybody_sees",
        ),
    ),
    Row(
        "PC-16",
        "a pending agent can be neither run nor woken",
        tests=(
            "tests/test_http_governance.py::test_an_agent_in_limbo_is_seen_and_every_door_is_shut",
            "tests/test_limbo.py::test_no_run_is_started",
            "tests/test_limbo.py::test_it_is_not_woken",
            "tests/test_limbo.py::test_no_mail_reaches_it",
        ),
    ),
    Row(
        "PC-17",
        "a pending agent cannot own an outcome",
        tests=(
            "tests/test_limbo.py::test_nothing_is_delegated_to_it",
            "tests/test_limbo.py::test_no_outcome_is_created_for_it",
        ),
    ),
    Row(
        "PC-18",
        "no token is issued for a pending agent",
        tests=(
            "tests/test_http_governance.py::test_an_agent_in_limbo_is_seen_and_every_door_is_shut",
            "tests/test_limbo.py::test_no_key_is_created_for_it",
        ),
    ),
    Row(
        "PC-19",
        "a token of a pending agent is refused",
        tests=("tests/test_limbo.py::test_a_key_that_it_has_all_the_same_opens_nothing",),
    ),
    Row(
        "PC-20",
        "only an approved hire makes a pending agent operational",
        tests=(
            "tests/test_http_governance.py::test_an_agent_in_limbo_is_seen_and_every_door_is_shut",
            "tests/test_limbo.py::test_its_status_follows_its_approval_and_nothing_else",
            "tests/test_limbo.py::test_its_configuration_stays_as_it_was_asked_for",
            "tests/test_limbo.py::test_it_stays_where_it_was_asked_for",
        ),
    ),
    Row(
        "PC-21",
        "wake, run, delegation and token each check for pending",
        tests=(
            "tests/test_limbo.py::test_no_run_is_started",
            "tests/test_limbo.py::test_it_is_not_woken",
            "tests/test_limbo.py::test_nothing_is_delegated_to_it",
            "tests/test_limbo.py::test_no_outcome_is_created_for_it",
        ),
    ),
    Row(
        "PC-22",
        "an agent's state changes by listed transitions only",
        tests=(
            "tests/test_limbo.py::test_its_status_follows_its_approval_and_nothing_else",
            "tests/test_configuration.py::test_what_the_adapter_or_the_model_does_not_take_is_refused",
        ),
    ),
    Row(
        "PC-23",
        "there are approvals of a hire and of the CEO's strategy",
        tests=("tests/test_approvals.py::test_a_strategy_is_approved_without_further_effect",),
    ),
    Row(
        "PC-24",
        "an approval has one of five states",
        tests=("tests/test_approvals.py::test_every_edge_of_the_table_is_walked_or_refused",),
    ),
    Row(
        "PC-25",
        "a pending approval can be revised, approved, rejected, cancelled",
        tests=(
            "tests/test_approvals.py::test_every_edge_of_the_table_is_walked_or_refused",
            "tests/test_governance_histories.py::test_every_history_keeps_to_the_table_and_takes_effect_once",
        ),
    ),
    Row(
        "PC-26",
        "a returned approval is resubmitted, rejected or cancelled",
        tests=(
            "tests/test_http_governance.py::test_a_hire_is_sent_back_revised_and_approved",
            "tests/test_approvals.py::test_every_edge_of_the_table_is_walked_or_refused",
            "tests/test_approvals.py::test_what_was_sent_back_is_resubmitted_before_it_is_approved",
            "tests/test_governance_histories.py::test_every_history_keeps_to_the_table_and_takes_effect_once",
        ),
    ),
    Row(
        "PC-27",
        "no other approval transition exists; three states are final",
        tests=(
            "tests/test_http_governance.py::test_what_is_decided_stays_decided",
            "tests/test_approvals.py::test_every_edge_of_the_table_is_walked_or_refused",
            "tests/test_governance_histories.py::test_every_history_keeps_to_the_table_and_takes_effect_once",
        ),
    ),
    Row(
        "PC-28",
        "a hire approval names agent, requester and configuration",
        tests=(
            "tests/test_http_governance.py::test_a_hire_is_asked_for_looked_at_and_approved",
            "tests/test_limbo.py::test_it_is_a_real_agent_that_everybody_sees",
        ),
    ),
    Row(
        "PC-29",
        "comments of an approval are stored with author and times",
        tests=("tests/test_approvals.py::test_comments_and_replies_reach_those_who_are_concerned",),
    ),
    Row(
        "PC-30",
        "agents and users may comment on an approval",
        tests=(
            "tests/test_http_governance.py::test_people_and_agents_comment_and_answer_each_other",
            "tests/test_approvals.py::test_comments_and_replies_reach_those_who_are_concerned",
        ),
    ),
    Row(
        "PC-31",
        "comments of an approval are kept for good",
        tests=("tests/test_approvals.py::test_notes_stay_among_the_comments_after_a_resubmission",),
    ),
    Row(
        "PC-32",
        "one service makes every approval transition",
        tests=(
            "tests/test_approvals.py::test_every_edge_of_the_table_is_walked_or_refused",
            "tests/test_hiring.py::test_the_revision_that_is_approved_is_the_agent_that_works",
        ),
    ),
    Row(
        "PC-33",
        "the agent's state follows the approval of its hire",
        tests=("tests/test_approvals.py::test_a_strategy_is_approved_without_further_effect",),
    ),
    Row(
        "PC-34",
        "the hire route is for the board and those who may hire",
        tests=(
            "tests/test_http_governance.py::test_hires_are_for_the_board_and_for_who_may",
            "tests/test_hiring.py::test_where_the_company_asks_a_hire_waits_for_the_board",
            "tests/test_hiring.py::test_only_who_may_create_agents_hires_for_a_post",
        ),
    ),
    Row(
        "PC-35",
        "a hire stores the agent before its approval",
        tests=(
            "tests/test_hiring.py::test_where_the_company_asks_a_hire_waits_for_the_board",
            "tests/test_limbo.py::test_it_is_a_real_agent_that_everybody_sees",
        ),
    ),
    Row(
        "PC-36",
        "with the setting on a hire gives a pending agent and approval",
        tests=(
            "tests/test_http_governance.py::test_a_hire_is_asked_for_looked_at_and_approved",
            "tests/test_mcp_governance.py::test_the_official_client_hires_with_a_revision_round",
            "tests/test_hiring.py::test_where_the_company_asks_a_hire_waits_for_the_board",
            "tests/test_limbo.py::test_it_is_a_real_agent_that_everybody_sees",
        ),
    ),
    Row(
        "PC-37",
        "with the setting off a hired agent is idle at once",
        tests=(
            "tests/test_http_governance.py::test_with_the_setting_off_a_hire_is_ready_at_once",
            "tests/test_hiring.py::test_where_it_does_not_the_agent_works_at_once",
        ),
    ),
    Row(
        "PC-38",
        "the board may create agents directly; agents hire",
        tests=(
            "tests/test_http_governance.py::test_the_board_creates_directly_and_agents_do_not",
            "tests/test_hiring.py::test_the_board_creates_directly_and_the_record_says_so",
        ),
    ),
    Row(
        "PC-39",
        "an agent created by the board needs no approval",
        tests=(
            "tests/test_http_governance.py::test_the_board_creates_directly_and_agents_do_not",
            "tests/test_hiring.py::test_the_board_creates_directly_and_the_record_says_so",
        ),
    ),
    Row(
        "PC-40",
        "approving a hire makes its agent idle",
        tests=(
            "tests/test_http_governance.py::test_a_hire_is_asked_for_looked_at_and_approved",
            "tests/test_hiring.py::test_where_the_company_asks_a_hire_waits_for_the_board",
            "tests/test_limbo.py::test_all_doors_open_with_the_approval",
        ),
    ),
    Row(
        "PC-41",
        "a rejected hire leaves its agent inactive",
        tests=(
            "tests/test_http_governance.py::test_a_rejected_agent_is_terminated_and_can_be_deleted",
            "tests/test_hiring.py::test_who_is_not_taken_on_is_terminated_and_the_name_is_free",
        ),
    ),
    Row(
        "PC-42",
        "a rejected hire ends its agent; deletion is separate",
        tests=(
            "tests/test_http_governance.py::test_a_rejected_agent_is_terminated_and_can_be_deleted",
            "tests/test_hiring.py::test_who_is_not_taken_on_is_terminated_and_the_name_is_free",
            "tests/test_hiring.py::test_a_disapproved_agent_is_deleted_and_its_approval_stays",
        ),
    ),
    Row(
        "PC-43",
        "an approval can be read by its id",
        tests=("tests/test_http_governance.py::test_a_hire_is_asked_for_looked_at_and_approved",),
    ),
    Row(
        "PC-44",
        "an approval can be returned for revision",
        tests=("tests/test_http_governance.py::test_a_hire_is_sent_back_revised_and_approved",),
    ),
    Row(
        "PC-45",
        "a returned approval can be submitted again",
        tests=(
            "tests/test_http_governance.py::test_a_hire_is_sent_back_revised_and_approved",
            "tests/test_mcp_governance.py::test_the_official_client_hires_with_a_revision_round",
        ),
    ),
    Row(
        "PC-46",
        "the comments of an approval can be listed",
        tests=(
            "tests/test_http_governance.py::test_people_and_agents_comment_and_answer_each_other",
        ),
    ),
    Row(
        "PC-47",
        "a comment can be added to an approval",
        tests=(
            "tests/test_http_governance.py::test_people_and_agents_comment_and_answer_each_other",
        ),
    ),
    Row(
        "PC-48",
        "a decision on an approval takes a note",
        tests=(
            "tests/test_http_governance.py::test_a_hire_is_asked_for_looked_at_and_approved",
            "tests/test_approvals.py::test_notes_stay_among_the_comments_after_a_resubmission",
        ),
    ),
    Row(
        "PC-49",
        "every change appends an event",
        tests=(
            "tests/test_http_governance.py::test_activity_tells_who_did_what_to_what",
            "tests/test_approvals.py::test_every_step_is_in_the_record",
        ),
    ),
    Row(
        "PC-50",
        "the agents' configurations can be listed",
        tests=(
            "tests/test_http_governance.py::test_configurations_are_for_those_who_may_and_without_secrets",
            "tests/test_configuration.py::test_it_is_read_without_its_secrets_and_says_which",
        ),
    ),
    Row(
        "PC-51",
        "one agent's configuration can be read",
        tests=(
            "tests/test_http_governance.py::test_configurations_are_for_those_who_may_and_without_secrets",
            "tests/test_configuration.py::test_it_is_read_without_its_secrets_and_says_which",
        ),
    ),
    Row(
        "PC-52",
        "configurations are for the board, the CEO and who may hire",
        tests=(
            "tests/test_http_governance.py::test_configurations_are_for_those_who_may_and_without_secrets",
            "tests/test_permissions.py::test_configurations_are_read_by_those_who_may_hire",
            "tests/test_configuration.py::test_a_proposal_does_not_show_what_its_author_may_not_read",
            "tests/test_authority_governance.py::test_hiring_permitting_and_reading_follow_the_rules_in_every_case",
        ),
    ),
    Row(
        "PC-53",
        "what looks like a secret in a configuration is hidden",
        tests=(
            "tests/test_http_governance.py::test_configurations_are_for_those_who_may_and_without_secrets",
            "tests/test_configuration.py::test_it_is_read_without_its_secrets_and_says_which",
        ),
    ),
    Row(
        "PC-54",
        "an answer with hidden values says so",
        tests=(
            "tests/test_http_governance.py::test_configurations_are_for_those_who_may_and_without_secrets",
            "tests/test_configuration.py::test_it_is_read_without_its_secrets_and_says_which",
        ),
    ),
    Row(
        "PC-55",
        "hiding is tested with values to hide and to show",
        tests=(
            "tests/test_redaction.py::test_a_value_is_hidden_because_of_its_name",
            "tests/test_redaction.py::test_a_value_is_hidden_because_of_its_shape",
            "tests/test_redaction.py::test_a_secret_is_found_wherever_it_stands",
            "tests/test_redaction.py::test_ordinary_values_stay",
        ),
    ),
    Row(
        "PC-56",
        "others see name, role and state, never configuration",
        tests=(
            "tests/test_http_governance.py::test_configurations_are_for_those_who_may_and_without_secrets",
            "tests/test_permissions.py::test_configurations_are_read_by_those_who_may_hire",
        ),
    ),
    Row(
        "PC-57",
        "the index of adapter documentation is plain text",
        tests=(
            "tests/test_http_governance.py::test_reflection_is_plain_text_behind_the_same_gate",
        ),
    ),
    Row(
        "PC-58",
        "the documentation of one adapter is plain text",
        tests=(
            "tests/test_http_governance.py::test_reflection_is_plain_text_behind_the_same_gate",
        ),
    ),
    Row(
        "PC-59",
        "the index lists installed adapters and how to hire",
        tests=(
            "tests/test_adapters.py::test_the_index_names_adapters_addresses_and_the_hire",
            "tests/test_http_governance.py::test_reflection_is_plain_text_behind_the_same_gate",
        ),
    ),
    Row(
        "PC-60",
        "an adapter's text gives keys, defaults, risks and examples",
        tests=(
            "tests/test_adapters.py::test_the_documentation_gives_every_key_with_default_and_description",
            "tests/test_adapters.py::test_every_example_is_valid",
        ),
    ),
    Row(
        "PC-61",
        "adapter documentation has the gate of configurations",
        tests=(
            "tests/test_http_governance.py::test_reflection_is_plain_text_behind_the_same_gate",
        ),
    ),
    Row(
        "PC-62",
        "an adapter supplies its own configuration text",
        tests=(
            "tests/test_adapters.py::test_the_documentation_gives_every_key_with_default_and_description",
        ),
    ),
    Row(
        "PC-63",
        "the texts come from the installed adapters",
        tests=(
            "tests/test_adapters.py::test_the_text_of_an_adapter_is_its_own",
            "tests/test_adapters.py::test_a_plugin_from_a_wheel_shows_up_and_broken_ones_do_no_harm",
        ),
    ),
    Row(
        "PC-64",
        "the approval setting is a switch that keeps its value",
        tests=(
            "tests/test_web_settings.py::test_the_switch_for_new_hires_is_on_at_first_and_keeps_what_it_is_set_to",
        ),
    ),
    Row(
        "PC-65",
        "an agent's page has a switch for the hiring permission",
        tests=(
            "tests/test_web_agent.py::test_the_hiring_permission_is_a_switch_that_keeps_its_value",
        ),
    ),
    Row(
        "PC-66",
        "the hire page asks for role, name, title and boss",
        tests=("tests/test_web_hire.py::test_the_board_hires_at_once_what_it_saw_in_the_preview",),
    ),
    Row(
        "PC-67",
        "the hire page takes instructions and capabilities",
        tests=("tests/test_web_hire.py::test_the_board_hires_at_once_what_it_saw_in_the_preview",),
    ),
    Row(
        "PC-68",
        "the hire page shows adapter texts and related configurations",
        tests=(
            "tests/test_web_hire.py::test_the_adapters_text_and_similar_configurations_are_beside_the_form",
        ),
    ),
    Row(
        "PC-69",
        "after a hire the page says pending or ready",
        tests=(
            "tests/test_web_hire.py::test_a_hire_that_somebody_shall_approve_is_pending_and_then_ready",
            "tests/test_web_hire.py::test_the_board_hires_at_once_what_it_saw_in_the_preview",
        ),
    ),
    Row(
        "PC-70",
        "an approval has a page, linked from inbox and list",
        tests=(
            "tests/test_web_approvals.py::test_an_approval_is_found_from_the_front_page_and_from_the_list",
        ),
    ),
    Row(
        "PC-71",
        "the approval page takes comments, revision and decisions",
        tests=(
            "tests/test_web_approvals.py::test_a_hire_is_talked_about_sent_back_revised_and_approved",
        ),
    ),
    Row(
        "PC-72",
        "the approval page shows what happened when",
        tests=(
            "tests/test_web_approvals.py::test_a_hire_is_talked_about_sent_back_revised_and_approved",
        ),
    ),
    Row(
        "PC-73",
        "the board deletes a rejected agent after confirming",
        tests=(
            "tests/test_web_approvals.py::test_a_disapproved_agent_is_deleted_after_confirming_and_the_approval_stays",
        ),
    ),
    Row(
        "PC-74",
        "deleting a rejected agent keeps approval and comments",
        tests=(
            "tests/test_http_governance.py::test_a_rejected_agent_is_terminated_and_can_be_deleted",
            "tests/test_web_approvals.py::test_a_disapproved_agent_is_deleted_after_confirming_and_the_approval_stays",
        ),
    ),
    Row(
        "PC-75",
        "badges, filters and controls know pending agents",
        tests=(
            "tests/test_web_agent.py::test_an_agent_that_awaits_approval_has_a_way_to_it_and_no_controls",
            "tests/test_web_org.py::test_statuses_are_words_and_filters_know_those_who_await_approval",
        ),
    ),
    Row(
        "PC-76",
        "a hiring skill ships with its API reference",
        tests=(
            "tests/test_skills.py::test_the_main_skill_points_to_the_hiring_one_and_that_to_its_reference",
            "tests/test_skills.py::test_the_reference_is_up_to_date",
        ),
    ),
    Row(
        "PC-77",
        "the hiring skill covers the hire from reading to revision",
        tests=("tests/test_skills.py::test_the_hiring_skill_goes_through_the_whole_hire",),
    ),
    Row(
        "PC-78",
        "hiring, its gates and its states are tested on the server",
        tests=(
            "tests/test_http_governance.py::test_of_two_board_members_one_decides_and_the_other_is_told",
        ),
    ),
    Row(
        "PC-79",
        "hiring, its switches and comments are tested in the pages",
        tests=(
            "tests/test_web_agent.py::test_the_hiring_permission_is_a_switch_that_keeps_its_value",
            "tests/test_web_approvals.py::test_a_hire_is_talked_about_sent_back_revised_and_approved",
            "tests/test_web_hire.py::test_a_hire_that_somebody_shall_approve_is_pending_and_then_ready",
            "tests/test_web_hire.py::test_the_board_hires_at_once_what_it_saw_in_the_preview",
        ),
    ),
    Row(
        "PC-80",
        "schema changes ship as migrations",
        tests=(
            "tests/test_store.py::test_the_migrations_make_the_tables_that_the_code_expects",
            "tests/test_upgrades.py::test_an_upgrade_keeps_every_row_and_the_company_works_on",
        ),
    ),
    Row(
        "AG-01",
        "files have an id and a description",
        tests=(
            "tests/test_knowledge_base.py::test_a_new_file_has_an_id_a_description_and_its_first_version",
            "tests/test_knowledge_base.py::test_a_file_needs_a_proper_description",
        ),
    ),
    Row(
        "AG-02",
        "per file an agent has one level: none, read or write",
        tests=(
            "tests/test_authority.py::test_every_decision_about_a_file_follows_the_rules",
            "tests/test_authority.py::test_more_rights_never_mean_less_and_more_prohibitions_never_mean_more",
            "tests/test_authority.py::test_a_condition_on_writing_leaves_reading_alone",
            "tests/test_authority.py::test_none_is_less_than_read_is_less_than_write",
            "tests/test_knowledge_base.py::test_without_a_grant_a_file_is_known_and_its_contents_are_refused",
            "tests/test_knowledge_base.py::test_an_explicit_none_shows_the_description_and_nothing_more",
            "tests/test_knowledge_base.py::test_read_gives_the_contents_and_refuses_changes",
            "tests/test_knowledge_base.py::test_write_gives_reading_and_new_versions",
        ),
    ),
    Row(
        "AG-03",
        "level none shows id and description, not the contents",
        tests=(
            "tests/test_knowledge_base.py::test_without_a_grant_a_file_is_known_and_its_contents_are_refused",
            "tests/test_knowledge_base.py::test_an_explicit_none_shows_the_description_and_nothing_more",
            "tests/test_knowledge_base.py::test_who_links_here_does_not_betray_unlisted_files",
            "tests/test_knowledge_base.py::test_an_unlisted_file_exists_for_its_readers_and_writers_alone",
            "tests/test_knowledge_base.py::test_an_unlisted_file_is_hidden_again_from_whom_the_board_denies_it",
            "tests/test_knowledge_base.py::test_a_file_can_be_hidden_and_listed_again",
        ),
    ),
    Row(
        "AG-04",
        "level read gives contents and refuses changes",
        tests=("tests/test_knowledge_base.py::test_read_gives_the_contents_and_refuses_changes",),
    ),
    Row(
        "AG-05",
        "level write also adds versions",
        tests=("tests/test_knowledge_base.py::test_write_gives_reading_and_new_versions",),
    ),
    Row(
        "AG-06",
        "every call checks access at the time of the call",
        tests=(
            "tests/test_knowledge_base.py::test_a_grant_counts_from_the_next_call_on_and_so_does_its_end",
            "tests/test_knowledge_base.py::test_an_expired_grant_ends_between_two_calls",
            "tests/test_knowledge_base.py::test_a_call_under_way_when_its_grant_ends_happened_before_or_is_refused",
            "tests/test_knowledge_base.py::test_an_agent_that_was_terminated_reads_nothing_any_more",
        ),
    ),
    Row(
        "AG-07",
        "versions are stored by hash and numbered in the database",
        tests=(
            "tests/test_knowledge_base.py::test_a_version_is_a_blob_named_by_its_hash_in_a_folder_named_by_its_file",
        ),
    ),
    Row(
        "AG-08",
        "whoever has access can read earlier versions",
        tests=(
            "tests/test_knowledge_base.py::test_history_has_number_hash_time_and_author_and_each_version_can_be_read",
        ),
    ),
    Row(
        "AG-09",
        "an overwrite names the version and hash it replaces",
        tests=(
            "tests/test_knowledge_base.py::test_an_overwrite_must_name_the_version_and_hash",
            "tests/test_knowledge_base.py::test_a_stale_overwrite_changes_nothing_and_tells_the_current_pair",
            "tests/test_knowledge_base.py::test_of_64_writers_one_wins_each_version_and_the_others_learn_the_current_pair",
        ),
    ),
    Row(
        "AG-10",
        "a stale overwrite is a conflict and changes nothing",
        tests=(
            "tests/test_knowledge_base.py::test_a_stale_overwrite_changes_nothing_and_tells_the_current_pair",
            "tests/test_knowledge_base.py::test_of_64_writers_one_wins_each_version_and_the_others_learn_the_current_pair",
            "tests/test_store_crash.py::test_a_killed_writer_loses_nothing_it_acknowledged",
        ),
    ),
    Row(
        "AG-11",
        "readers do not wait for each other",
        tests=(
            "tests/test_knowledge_base.py::test_many_readers_at_once_all_read_and_are_all_on_record",
            "tests/test_knowledge_base.py::test_two_changes_of_a_description_at_once_lose_nothing",
        ),
    ),
    Row(
        "AG-12",
        "agents cannot write into the blob store themselves",
        tests=(
            "tests/test_knowledge_base.py::test_a_run_imports_files_of_its_workspace_as_versions",
            "tests/test_knowledge_base.py::test_a_workspace_does_not_lead_to_the_blobs",
        ),
    ),
    Row(
        "AG-13",
        "a write imports a workspace file as a new version",
        tests=(
            "tests/test_knowledge_base.py::test_a_run_imports_files_of_its_workspace_as_versions",
        ),
    ),
    Row(
        "AG-14",
        "a changed grant counts from the next call on",
        tests=(
            "tests/test_authority_histories.py::test_every_history_keeps_each_grant_within_its_source",
            "tests/test_knowledge_base.py::test_a_grant_counts_from_the_next_call_on_and_so_does_its_end",
            "tests/test_knowledge_base.py::test_a_call_under_way_when_its_grant_ends_happened_before_or_is_refused",
        ),
    ),
    Row(
        "AG-15",
        "who read and wrote a file, and when, is on record",
        tests=(
            "tests/test_knowledge_base.py::test_the_access_log_names_agent_run_user_version_and_time",
        ),
    ),
    Row(
        "AG-16",
        "list the files one can read, with their paths",
        tests=(
            "tests/test_knowledge_base.py::test_the_listing_has_what_one_can_read_or_write_and_nothing_else",
        ),
    ),
    Row(
        "AG-17",
        "search the descriptions of all visible files",
        tests=(
            "tests/test_knowledge_base.py::test_search_finds_the_same_on_both_databases",
            "tests/test_knowledge_base.py::test_search_puts_the_better_match_first",
            "tests/test_knowledge_base.py::test_among_equal_matches_and_without_words_the_newest_comes_first",
            "tests/test_knowledge_base.py::test_search_takes_every_text_as_words_and_never_as_syntax",
            "tests/test_knowledge_base.py::test_what_is_not_text_cannot_be_searched_for",
            "tests/test_knowledge_base.py::test_search_shows_the_level_one_has",
        ),
    ),
    Row(
        "AG-18",
        "a read returns contents, version number and hash",
        tests=(
            "tests/test_knowledge_base.py::test_a_read_tells_the_version_and_hash_that_a_write_needs",
            "tests/test_knowledge_base.py::test_every_content_comes_back_as_it_was",
            "tests/test_knowledge_base.py::test_20_mib_go_in_and_come_out_whether_whole_or_as_they_arrive",
        ),
    ),
    Row(
        "AG-19",
        "a write takes id and path, and what it overwrites",
        tests=(
            "tests/test_knowledge_base.py::test_an_overwrite_must_name_the_version_and_hash",
            "tests/test_knowledge_base.py::test_a_run_imports_files_of_its_workspace_as_versions",
            "tests/test_knowledge_base.py::test_a_repeated_create_or_write_has_one_effect_and_the_first_answer",
        ),
    ),
    Row(
        "AG-20",
        "creating a file takes path and description, returns an id",
        tests=(
            "tests/test_knowledge_base.py::test_a_new_file_has_an_id_a_description_and_its_first_version",
            "tests/test_knowledge_base.py::test_more_than_32_mib_is_refused_and_leaves_nothing_behind",
            "tests/test_knowledge_base.py::test_a_run_imports_files_of_its_workspace_as_versions",
            "tests/test_knowledge_base.py::test_a_repeated_create_or_write_has_one_effect_and_the_first_answer",
        ),
    ),
    Row(
        "AG-21",
        "a file's versions can be listed with hash and time",
        tests=(
            "tests/test_knowledge_base.py::test_history_has_number_hash_time_and_author_and_each_version_can_be_read",
        ),
    ),
    Row(
        "AG-22",
        "a version can be read by its number",
        tests=(
            "tests/test_knowledge_base.py::test_history_has_number_hash_time_and_author_and_each_version_can_be_read",
            "tests/test_knowledge_base.py::test_a_version_that_does_not_exist_is_an_error",
        ),
    ),
    Row(
        "AG-23",
        "kb:// references name files; web addresses stay as they are",
        tests=(
            "tests/test_knowledge_base.py::test_links_name_files_and_web_addresses_stay_as_they_are",
            "tests/test_knowledge_base.py::test_who_links_here_does_not_betray_unlisted_files",
        ),
    ),
    Row(
        "AG-24",
        "repositories are cloned into a workspace from a cache",
        tests=(
            "tests/test_repos.py::test_a_repository_is_cloned_into_the_workspace_from_a_local_copy",
            "tests/test_repos.py::test_twenty_agents_at_once_cause_one_fetch",
        ),
    ),
    Row(
        "AG-25",
        "all work is outcomes, each a Markdown file",
        tests=("tests/test_outcomes.py::test_whoever_creates_a_part_owns_it",),
    ),
    Row(
        "AG-26",
        "an outcome's file tells state, reason, parents and children",
        tests=(
            "tests/test_outcomes.py::test_the_document_tells_state_reason_and_relations",
            "tests/test_outcomes.py::test_a_document_follows_its_outcome_and_is_written_by_nothing_else",
        ),
    ),
    Row(
        "AG-27",
        "outcomes may have several parents and form no cycle",
        tests=(
            "tests/test_organisation_histories.py::test_every_history_keeps_the_organisation_as_the_rules_say",
            "tests/test_outcomes.py::test_a_view_shows_why_how_owner_and_history",
            "tests/test_outcomes.py::test_every_chain_of_reasons_is_shown",
            "tests/test_outcomes.py::test_nothing_waits_for_itself",
            "tests/test_outcomes.py::test_two_changes_that_are_fine_alone_never_make_a_cycle_together",
            "tests/test_outcomes.py::test_a_cycle_written_around_remit_hangs_nothing",
        ),
    ),
    Row(
        "AG-28",
        "an outcome has exactly one owner",
        tests=(
            "tests/test_delegation.py::test_everything_below_that_is_the_delegators_goes_along",
            "tests/test_delegation.py::test_a_reclaim_takes_everything_back",
            "tests/test_delegation.py::test_overlapping_parts_delegated_at_once_have_one_owner_each",
            "tests/test_organisation_histories.py::test_every_history_keeps_the_organisation_as_the_rules_say",
            "tests/test_outcomes.py::test_whoever_creates_a_part_owns_it",
            "tests/test_outcomes.py::test_what_a_person_creates_belongs_to_the_owner_of_what_it_is_for",
        ),
    ),
    Row(
        "AG-29",
        "an agent's open outcomes are found quickly",
        tests=(
            "tests/test_outcomes.py::test_open_outcomes_of_an_agent_are_listed_and_filtered",
            "tests/test_outcomes.py::test_what_an_agent_can_work_on_is_found_by_an_index",
            "tests/test_outcomes.py::test_an_outcome_can_be_worked_on_exactly_when_nothing_stands_in_its_way",
            "tests/test_outcomes.py::test_what_is_delegated_is_worked_on_by_its_agent_and_not_by_the_delegator",
        ),
    ),
    Row(
        "AG-30",
        "an outcome's history tells who did what and why",
        tests=(
            "tests/test_history.py::test_the_history_of_an_outcome_outlives_its_agents",
            "tests/test_outcomes.py::test_a_view_shows_why_how_owner_and_history",
            "tests/test_outcomes.py::test_the_history_tells_who_did_what_when_and_why",
            "tests/test_outcomes.py::test_the_history_of_a_mandate_begins_with_its_creation",
            "tests/test_outcomes.py::test_an_outcome_is_completed_once_its_parts_are",
        ),
    ),
    Row(
        "AG-31",
        "whoever can read an outcome can read its history",
        tests=(
            "tests/test_delegation.py::test_everything_beyond_the_boundary_is_refused_with_its_reason",
            "tests/test_outcomes.py::test_the_history_tells_who_did_what_when_and_why",
            "tests/test_outcomes.py::test_the_document_tells_state_reason_and_relations",
            "tests/test_outcomes.py::test_a_document_is_read_by_those_who_may_read_the_outcome",
        ),
    ),
    Row(
        "AG-32",
        "view an outcome with neighbours, owner and history",
        tests=("tests/test_outcomes.py::test_a_view_shows_why_how_owner_and_history",),
    ),
    Row(
        "AG-33",
        "view every path from an outcome to the top",
        tests=(
            "tests/test_outcomes.py::test_every_chain_of_reasons_is_shown",
            "tests/test_outcomes.py::test_sixteen_stacked_diamonds_show_200_chains_and_say_that_there_are_more",
        ),
    ),
    Row(
        "AG-34",
        "view an outcome with all its descendants",
        tests=(
            "tests/test_outcomes.py::test_sixteen_stacked_diamonds_show_200_chains_and_say_that_there_are_more",
            "tests/test_outcomes.py::test_a_subtree_is_shown_down_to_a_depth",
        ),
    ),
    Row(
        "AG-35",
        "create an outcome below another and own it",
        tests=(
            "tests/test_outcomes.py::test_whoever_creates_a_part_owns_it",
            "tests/test_outcomes.py::test_what_a_person_creates_belongs_to_the_owner_of_what_it_is_for",
        ),
    ),
    Row(
        "AG-36",
        "update an outcome's text, state and relations",
        tests=(
            "tests/test_delegation.py::test_a_boss_reads_all_and_changes_and_judges_what_it_delegated",
            "tests/test_outcomes.py::test_text_rank_and_relations_are_changed_and_recorded",
            "tests/test_outcomes.py::test_a_change_needs_the_version_it_was_made_for",
            "tests/test_outcomes.py::test_one_of_many_changes_at_once_wins",
            "tests/test_outcomes.py::test_an_outcome_keeps_at_least_one_reason_unless_it_is_a_mandate",
        ),
    ),
    Row(
        "AG-37",
        "complete an outcome",
        tests=(
            "tests/test_outcomes.py::test_an_outcome_is_completed_once_its_parts_are",
            "tests/test_outcomes.py::test_a_perpetual_outcome_is_never_completed",
        ),
    ),
    Row(
        "AG-38",
        "close an outcome with a reason that its file keeps",
        tests=(
            "tests/test_outcomes.py::test_the_document_tells_state_reason_and_relations",
            "tests/test_outcomes.py::test_closing_takes_a_reason_and_what_was_only_for_it",
        ),
    ),
    Row(
        "AG-39",
        "every outcome operation is decided first",
        tests=(
            "tests/test_authority_outcomes.py::test_every_decision_about_an_outcome_follows_the_rules",
            "tests/test_delegation.py::test_everything_beyond_the_boundary_is_refused_with_its_reason",
            "tests/test_outcomes.py::test_a_document_follows_its_outcome_and_is_written_by_nothing_else",
            "tests/test_outcomes.py::test_a_document_is_read_by_those_who_may_read_the_outcome",
            "tests/test_outcomes.py::test_a_walk_goes_no_further_than_the_caller_may_read",
        ),
    ),
    Row(
        "AG-40",
        "a dead end is closed and replaced by another outcome",
        tests=("tests/test_outcomes.py::test_a_dead_end_is_closed_and_replaced",),
    ),
    Row(
        "AG-41",
        "files, outcomes and mail ask one authority",
        tests=(
            "tests/test_authority.py::test_every_decision_about_a_file_follows_the_rules",
            "tests/test_command_path.py::test_a_refusal_is_recorded_with_reason_sentence_and_basis",
            "tests/test_companies.py::test_what_belongs_to_another_company_does_not_exist_for_its_neighbours",
        ),
    ),
    Row(
        "AG-42",
        "an agent's id is the id of its mandate",
        tests=(
            "tests/test_identity.py::test_an_agent_has_a_name_a_token_and_the_id_of_its_mandate",
        ),
    ),
    Row(
        "AG-43",
        "a run is identified by its agent and its own id",
        tests=(
            "tests/test_knowledge_base.py::test_a_run_imports_files_of_its_workspace_as_versions",
            "tests/test_knowledge_base.py::test_the_access_log_names_agent_run_user_version_and_time",
            "tests/test_identity.py::test_each_kind_of_token_is_issued_with_its_prefix",
            "tests/test_identity.py::test_a_runs_token_is_bound_to_agent_and_run_and_dies_with_the_run",
            "tests/test_identity.py::test_each_run_has_its_own_id_and_is_on_record_with_it",
        ),
    ),
    Row(
        "AG-44",
        "a capability gives an agent a right on one resource",
        tests=(
            "tests/test_authority.py::test_every_decision_about_a_file_follows_the_rules",
            "tests/test_capabilities.py::test_a_capability_can_be_about_every_kind_of_resource",
            "tests/test_capabilities.py::test_nonsense_cannot_be_granted",
        ),
    ),
    Row(
        "AG-45",
        "an agent grants only what it holds",
        tests=(
            "tests/test_authority.py::test_an_agent_grants_only_to_direct_reports_in_every_tree",
            "tests/test_authority.py::test_whatever_is_passed_on_is_inside_of_what_is_held",
            "tests/test_authority_histories.py::test_every_history_keeps_each_grant_within_its_source",
            "tests/test_capabilities.py::test_an_agent_gives_only_what_it_holds",
            "tests/test_capabilities.py::test_an_agent_gives_to_its_direct_reports_and_to_nobody_else",
        ),
    ),
    Row(
        "AG-46",
        "a grant may be narrower, never wider",
        tests=(
            "tests/test_authority.py::test_whatever_is_passed_on_is_inside_of_what_is_held",
            "tests/test_authority.py::test_what_is_passed_down_a_chain_is_inside_of_everything_above",
            "tests/test_authority_histories.py::test_every_history_keeps_each_grant_within_its_source",
            "tests/test_capabilities.py::test_a_grant_may_be_narrower_and_never_wider",
            "tests/test_capabilities.py::test_a_grant_ends_no_later_than_what_it_comes_from",
        ),
    ),
    Row(
        "AG-47",
        "a delegated grant ends with its outcome, at all levels",
        tests=(
            "tests/test_authority_histories.py::test_every_history_keeps_each_grant_within_its_source",
            "tests/test_capabilities.py::test_what_is_revoked_takes_everything_along_that_was_passed_on_from_it",
            "tests/test_capabilities.py::test_a_grant_ends_with_its_outcome_at_every_level_below",
            "tests/test_capabilities.py::test_nothing_can_be_given_for_an_outcome_that_is_finished",
            "tests/test_capabilities.py::test_finishing_a_mandate_ends_its_agent_and_keeps_the_verdict",
        ),
    ),
    Row(
        "AG-48",
        "a missing capability is asked for up and granted down",
        tests=(
            "tests/test_capabilities.py::test_a_missing_capability_flows_down_step_by_step_each_in_its_own_scope",
        ),
    ),
    Row(
        "AG-49",
        "delegating can grant capabilities in the same call",
        tests=(
            "tests/test_capabilities.py::test_a_new_agent_can_be_given_its_capabilities_in_the_same_call",
            "tests/test_capabilities.py::test_if_one_of_the_first_capabilities_cannot_be_given_there_is_no_agent",
        ),
    ),
    Row(
        "AG-50",
        "sending is a capability: to the boss and to reports",
        tests=(
            "tests/test_mail_authority.py::test_who_may_write_to_whom_follows_the_rules_in_every_tree",
            "tests/test_mail_authority.py::test_every_pair_under_every_setting",
            "tests/test_mail_authority.py::test_a_new_company_lets_agents_write_along_the_chain_only",
        ),
    ),
    Row(
        "AG-51",
        "a new agent can write to its boss, and back",
        tests=(
            "tests/test_mail_authority.py::test_a_new_company_lets_agents_write_along_the_chain_only",
            "tests/test_mail_authority.py::test_an_agent_can_write_to_its_boss_from_the_start_and_its_capabilities_say_so",
        ),
    ),
    Row(
        "AG-52",
        "mail to any other agent is refused",
        tests=(
            "tests/test_mail_authority.py::test_who_may_write_to_whom_follows_the_rules_in_every_tree",
            "tests/test_mail_authority.py::test_a_capability_that_does_not_fit_opens_nothing",
            "tests/test_mail_authority.py::test_an_agent_that_cannot_act_cannot_write",
            "tests/test_mail_authority.py::test_every_pair_under_every_setting",
        ),
    ),
    Row(
        "AG-53",
        "base tools can always be called; the operation is refused",
        tests=(
            "tests/test_authority.py::test_what_is_not_for_agents_is_refused_to_every_agent",
            "tests/test_knowledge_base.py::test_without_a_grant_a_file_is_known_and_its_contents_are_refused",
        ),
    ),
    Row(
        "AG-54",
        "another MCP server takes effect in a new run",
        tests=(
            "tests/test_mcp_servers.py::test_an_agent_at_work_is_told_after_the_change_and_started_again_when_it_ends",
            "tests/test_mcp_servers.py::test_it_is_told_of_whatever_else_takes_a_server_or_changes_it",
        ),
    ),
    Row(
        "AG-55",
        "a change of MCP servers follows a fixed order",
        tests=(
            "tests/test_mcp_servers.py::test_an_agent_at_work_is_told_after_the_change_and_started_again_when_it_ends",
            "tests/test_secret_isolation.py::test_a_server_that_is_granted_in_mid_run_is_there_in_the_next_one",
        ),
    ),
    Row(
        "AG-56",
        "an agent lists its own capabilities",
        tests=(
            "tests/test_capabilities.py::test_an_agent_lists_its_own_capabilities_with_the_reason_of_each",
        ),
    ),
    Row(
        "AG-57",
        "an agent grants a held capability to a report",
        tests=(
            "tests/test_authority.py::test_an_agent_grants_only_to_direct_reports_in_every_tree",
            "tests/test_capabilities.py::test_an_agent_gives_only_what_it_holds",
            "tests/test_capabilities.py::test_an_agent_gives_to_its_direct_reports_and_to_nobody_else",
        ),
    ),
    Row(
        "AG-58",
        "a random token proves who is calling",
        tests=(
            "tests/test_identity.py::test_a_token_says_its_kind_and_has_256_random_bits",
            "tests/test_identity.py::test_each_kind_of_token_is_issued_with_its_prefix",
            "tests/test_identity.py::test_a_revoked_key_opens_nothing_and_the_others_still_do",
            "tests/test_identity.py::test_a_token_ends_at_its_expiry",
            "tests/test_identity.py::test_what_is_not_exactly_a_token_opens_nothing",
            "tests/test_identity.py::test_a_runs_token_is_bound_to_agent_and_run_and_dies_with_the_run",
            "tests/test_identity.py::test_terminating_an_agent_ends_all_its_tokens_and_its_run",
        ),
    ),
    Row(
        "AG-59",
        "sending does not wait; reading the inbox is separate",
        tests=(
            "tests/test_mail.py::test_a_message_is_a_file_that_its_receiver_may_read",
            "tests/test_mail.py::test_reading_the_inbox_is_another_call_and_takes_nothing_away",
            "tests/test_mail.py::test_an_agent_is_addressed_by_name_id_or_the_beginning_of_its_id",
        ),
    ),
    Row(
        "AG-60",
        "a message body is a file; mail carries its id",
        tests=(
            "tests/test_mail.py::test_a_message_is_a_file_that_its_receiver_may_read",
            "tests/test_mail.py::test_a_file_can_be_the_message_and_is_shown_as_it_was_then",
            "tests/test_mail.py::test_sending_is_in_the_record_with_its_basis",
        ),
    ),
    Row(
        "AG-61",
        "sending checks the sender's capability",
        tests=(
            "tests/test_mail_authority.py::test_who_may_write_to_whom_follows_the_rules_in_every_tree",
            "tests/test_mail_authority.py::test_every_pair_under_every_setting",
            "tests/test_mail_authority.py::test_what_was_said_explicitly_goes_before_the_tree",
        ),
    ),
    Row(
        "AG-62",
        "a message can be held until a time, also to oneself",
        tests=(
            "tests/test_mail.py::test_a_deferred_message_is_not_there_before_its_time",
            "tests/test_mail.py::test_what_came_due_while_nobody_watched_comes_once_and_in_order",
            "tests/test_mail.py::test_a_clock_that_jumps_loses_and_repeats_nothing",
            "tests/test_schedules.py::test_deferred_mail_is_cancelled_by_its_sender_or_from_above",
            "tests/test_mail_delivery.py::test_nothing_is_lost_repeated_or_out_of_order_whatever_happens",
            "tests/test_mail_delivery.py::test_the_same_on_a_server",
            "tests/test_mail.py::test_what_was_due_comes_before_what_is_sent_afterwards",
        ),
    ),
    Row(
        "AG-63",
        "the inbox lists what awaits its reader",
        tests=(
            "tests/test_mail.py::test_a_message_is_a_file_that_its_receiver_may_read",
            "tests/test_mail.py::test_reading_the_inbox_is_another_call_and_takes_nothing_away",
            "tests/test_mail.py::test_what_a_run_acknowledges_never_comes_again",
        ),
    ),
    Row(
        "AG-64",
        "mail makes one outcome to process the inbox, and a wake",
        tests=(
            "tests/test_mail.py::test_mail_opens_one_outcome_and_the_last_of_it_closes_it",
            "tests/test_mail.py::test_the_inbox_outcome_is_not_for_hands",
            "tests/test_mail.py::test_a_removed_layer_leaves_its_inbox_to_the_dead_letters",
            "tests/test_mail_delivery.py::test_nothing_is_lost_repeated_or_out_of_order_whatever_happens",
            "tests/test_mail_delivery.py::test_the_same_on_a_server",
        ),
    ),
    Row(
        "AG-65",
        "secrets are decrypted at start and stay in memory",
        tests=(
            "tests/test_secrets.py::test_values_are_looked_up_once_at_the_start_and_kept_in_memory_only",
        ),
    ),
    Row(
        "AG-66",
        "a run gets the secrets of its MCP servers only",
        tests=(
            "tests/test_upstream.py::test_only_the_secrets_of_a_server_that_is_used_are_looked_up",
            "tests/test_secrets.py::test_what_a_run_prints_or_says_last_is_without_its_secrets",
            "tests/test_secret_isolation.py::test_an_agent_that_looks_everywhere_does_not_find_the_secret_of_its_server",
        ),
    ),
    Row(
        "AG-67",
        "an agent uses a server without handling its secret",
        tests=(
            "tests/test_upstream.py::test_an_agent_uses_the_tools_of_a_server_that_it_was_granted",
            "tests/test_secret_isolation.py::test_an_agent_that_looks_everywhere_does_not_find_the_secret_of_its_server",
        ),
    ),
    Row(
        "AG-68",
        "an agent is durable, with all that belongs to it",
        tests=(
            "tests/test_delegation.py::test_delegating_makes_an_agent_with_the_id_of_the_outcome",
            "tests/test_delegation.py::test_judging_a_mandate_shuts_its_agents_down_at_every_level",
            "tests/test_organisation.py::test_an_agent_has_a_plain_name_that_is_free_to_use",
            "tests/test_organisation.py::test_a_name_is_unique_among_the_living_whatever_its_case",
            "tests/test_organisation.py::test_a_state_document_is_written_by_its_agent_and_read_by_its_bosses",
            "tests/test_organisation.py::test_an_activity_log_is_appended_by_submitting_and_by_nothing_else",
            "tests/test_organisation.py::test_an_agent_that_left_is_kept_with_all_that_it_was",
        ),
    ),
    Row(
        "AG-69",
        "agents form a tree with one boss each",
        tests=(
            "tests/test_delegation.py::test_delegating_makes_an_agent_with_the_id_of_the_outcome",
            "tests/test_delegation.py::test_a_report_can_be_given_more_and_keeps_what_it_had",
            "tests/test_organisation.py::test_everybody_has_one_boss_an_agent_or_a_user",
            "tests/test_organisation.py::test_no_configuration_moves_an_agent_and_no_move_touches_its_configuration",
            "tests/test_organisation.py::test_a_damaged_tree_gives_nobody_a_say_and_hangs_nothing",
            "tests/test_organisation_histories.py::test_every_history_keeps_the_organisation_as_the_rules_say",
            "tests/test_reorganise.py::test_a_moved_agent_works_for_its_new_boss",
            "tests/test_reorganise.py::test_no_move_makes_a_cycle_also_not_two_at_once",
        ),
    ),
    Row(
        "AG-70",
        "an agent reads its mandate and writes what is below",
        tests=(
            "tests/test_authority_outcomes.py::test_every_decision_about_an_outcome_follows_the_rules",
            "tests/test_delegation.py::test_who_reads_and_writes_what_after_a_delegation",
            "tests/test_outcomes.py::test_what_is_delegated_is_worked_on_by_its_agent_and_not_by_the_delegator",
        ),
    ),
    Row(
        "AG-71",
        "an agent has at most one live run",
        tests=("tests/test_organisation.py::test_an_agent_has_at_most_one_live_run",),
    ),
    Row(
        "AG-72",
        "an actionable outcome without a live run starts one",
        tests=(
            "tests/test_waking.py::test_whatever_gives_an_agent_something_to_do_wakes_it",
            "tests/test_waking.py::test_what_is_refused_wakes_nobody",
            "tests/test_waking.py::test_the_sweep_wakes_whom_everybody_forgot",
            "tests/test_worker.py::test_mail_starts_a_program_and_everything_of_its_run_ends_with_it",
        ),
    ),
    Row(
        "AG-73",
        "a run's workspace is destroyed with it",
        tests=(
            "tests/test_worker.py::test_mail_starts_a_program_and_everything_of_its_run_ends_with_it",
        ),
    ),
    Row(
        "AG-74",
        "what a run did not save is gone",
        tests=(
            "tests/test_worker.py::test_mail_starts_a_program_and_everything_of_its_run_ends_with_it",
        ),
    ),
    Row(
        "AG-75",
        "the runs of an agent share a cacheable prompt",
        tests=(
            "tests/test_prompt.py::test_the_beginning_is_the_same_in_every_run_and_memory_comes_after_it",
        ),
    ),
    Row(
        "AG-76",
        "a run handles mail, then the most urgent outcome, then mail",
        tests=("tests/test_prompt.py::test_it_says_how_to_work_and_is_short",),
    ),
    Row(
        "AG-77",
        "a run ends when nothing is left, after saving its state",
        tests=("tests/test_prompt.py::test_it_says_how_to_work_and_is_short",),
    ),
    Row(
        "AG-78",
        "a full context ends a run properly and starts another",
        tests=(
            "tests/test_memory.py::test_a_full_context_is_no_failure_of_who_got_on_and_the_next_run_goes_on",
            "tests/test_memory.py::test_a_conversation_that_is_full_is_not_gone_on_with",
        ),
    ),
    Row(
        "AG-79",
        "processing the inbox only sorts it",
        tests=("tests/test_prompt.py::test_it_says_how_to_work_and_is_short",),
    ),
    Row(
        "AG-80",
        "every run has the base tools",
        tests=(
            "tests/test_mcp_tools.py::test_every_agent_has_every_base_tool_and_the_operation_is_refused",
        ),
    ),
    Row(
        "AG-81",
        "a run's settings hold workspace, base tools, granted servers",
        tests=(
            "tests/test_upstream.py::test_an_agent_uses_the_tools_of_a_server_that_it_was_granted",
            "tests/test_secret_isolation.py::test_the_real_claude_sees_and_uses_a_tool_of_another_server",
        ),
    ),
    Row(
        "AG-82",
        "the state document is read first and saved last",
        tests=(
            "tests/test_prompt.py::test_the_beginning_is_the_same_in_every_run_and_memory_comes_after_it",
        ),
    ),
    Row(
        "AG-83",
        "the state document is short; history rebuilds the rest",
        tests=(
            "tests/test_memory.py::test_after_a_crash_the_state_its_versions_and_the_log_say_what_was",
        ),
    ),
    Row(
        "AG-84",
        "Remit alone appends to the activity log",
        tests=(
            "tests/test_organisation.py::test_an_activity_log_is_appended_by_submitting_and_by_nothing_else",
        ),
    ),
    Row(
        "AG-85",
        "a company starts with a lasting mandate and a root agent",
        tests=(
            "tests/test_organisation.py::test_a_company_begins_with_a_lasting_mandate_and_a_root_agent_below_a_user",
            "tests/test_outcomes.py::test_a_perpetual_outcome_is_never_completed",
        ),
    ),
    Row(
        "AG-86",
        "a user is the root agent's boss and has an inbox",
        tests=(
            "tests/test_mail.py::test_the_board_is_everybody_with_a_say_over_the_sender",
            "tests/test_mail.py::test_an_agent_writes_to_a_person_over_it_and_to_no_other",
            "tests/test_questions.py::test_a_question_goes_to_the_boss_and_the_answer_wakes_who_asked",
            "tests/test_questions.py::test_a_reply_to_the_letter_is_an_answer",
            "tests/test_questions.py::test_a_question_to_the_board_is_on_the_list_of_everybody_over_the_asker",
            "tests/test_waiting.py::test_everything_that_awaits_a_person_is_in_one_list_oldest_first",
        ),
    ),
    Row(
        "AG-87",
        "a user's message wakes the root agent",
        tests=(
            "tests/test_mail.py::test_mail_opens_one_outcome_and_the_last_of_it_closes_it",
            "tests/test_mail.py::test_a_person_writes_to_the_root_agent_which_then_has_something_to_do",
        ),
    ),
    Row(
        "AG-88",
        "a boss may be a person, a program or another instance",
        tests=(
            "tests/test_organisation.py::test_the_boss_of_an_agent_may_be_a_person_or_a_program",
        ),
    ),
    Row(
        "AG-89",
        "an agent can be tested alone by mail",
        tests=("tests/test_simulation.py::test_an_agent_is_tested_alone_by_sending_it_mail",),
    ),
    Row(
        "AG-90",
        "a layer can come and go without touching the reports",
        tests=(
            "tests/test_reorganise.py::test_a_layer_comes_between_and_its_reports_stay_as_they_are",
            "tests/test_reorganise.py::test_a_layer_goes_and_leaves_its_work_and_reports_to_its_boss",
            "tests/test_simulation.py::test_a_layer_is_put_in_and_taken_out_and_those_below_notice_nothing",
        ),
    ),
    Row("AG-91", "subtrees federate and several users take part", deferred=FEDERATION),
    Row(
        "AG-92",
        "the CLI reads and sends mail of the root agent",
        tests=(
            "tests/test_cli_mail.py::test_a_person_writes_to_the_root_agent_and_reads_its_answer",
            "tests/test_http_mail.py::test_a_message_is_sent_read_answered_and_acknowledged",
        ),
    ),
    Row(
        "AG-93",
        "agents, outcomes, runs, inboxes and logs can be seen",
        tests=(
            "tests/test_web_agent.py::test_a_running_agent_shows_its_run_and_can_be_ended_paused_and_resumed",
            "tests/test_web_agent.py::test_an_agent_says_who_it_is_what_it_works_on_and_why_it_does_not_run",
            "tests/test_web_company.py::test_who_is_at_work_and_with_what_appears_and_goes_by_itself",
            "tests/test_web_events.py::test_the_record_is_told_in_words_and_filtered",
            "tests/test_web_home.py::test_what_awaits_a_person_is_on_the_front_page_and_goes_away_when_dealt_with",
            "tests/test_web_live.py::test_nine_tabs_share_a_connection_and_catch_up_after_the_instance_was_killed",
            "tests/test_web_outcomes.py::test_an_outcome_says_why_it_is_there_how_and_what_happened",
            "tests/test_web_outcomes.py::test_outcomes_are_listed_filtered_and_found",
            "tests/test_web_outcomes.py::test_the_drawing_links_to_each_outcome_and_can_be_moved_and_scaled",
        ),
    ),
    Row(
        "AG-94",
        "a user can message any agent and inspect everything",
        tests=(
            "tests/test_cli_mail.py::test_a_person_writes_to_any_agent_and_looks_into_its_inbox",
            "tests/test_cli_mail.py::test_a_person_writes_to_the_root_agent_and_reads_its_answer",
            "tests/test_http_mail.py::test_a_message_is_sent_read_answered_and_acknowledged",
            "tests/test_web_agent.py::test_a_person_writes_to_any_agent_and_sees_it_in_its_inbox",
            "tests/test_web_events.py::test_the_record_is_told_in_words_and_filtered",
            "tests/test_web_files.py::test_files_are_listed_searched_read_and_compared",
            "tests/test_web_outcomes.py::test_an_outcome_says_why_it_is_there_how_and_what_happened",
        ),
    ),
    Row(
        "AG-95",
        "other clients use the same protocol",
        tests=(
            "tests/test_web_events.py::test_what_a_page_does_and_shows_other_clients_do_and_see_too",
        ),
    ),
    Row(
        "AG-96",
        "delegating makes an agent with the outcome's id",
        tests=(
            "tests/test_delegation.py::test_delegating_makes_an_agent_with_the_id_of_the_outcome",
            "tests/test_delegation.py::test_what_was_reclaimed_can_be_delegated_again",
        ),
    ),
    Row(
        "AG-97",
        "the delegator names what to grant with the outcome",
        tests=(
            "tests/test_delegation.py::test_grants_come_with_the_outcome_and_end_with_it",
            "tests/test_delegation.py::test_nobody_hands_over_more_than_they_hold",
        ),
    ),
    Row(
        "AG-98",
        "the new agent owns the outcome's descendants",
        tests=(
            "tests/test_delegation.py::test_everything_below_that_is_the_delegators_goes_along",
            "tests/test_delegation.py::test_what_others_own_or_share_stays_where_it_is",
            "tests/test_delegation.py::test_what_somebody_elses_work_reaches_through_ones_own_stays_too",
            "tests/test_delegation.py::test_a_report_can_be_given_more_and_keeps_what_it_had",
            "tests/test_delegation.py::test_overlapping_parts_delegated_at_once_have_one_owner_each",
            "tests/test_delegation.py::test_ten_thousand_outcomes_change_hands_in_one_transaction",
            "tests/test_organisation_histories.py::test_every_history_keeps_the_organisation_as_the_rules_say",
        ),
    ),
    Row(
        "AG-99",
        "the boss no longer writes inside the subtree",
        tests=(
            "tests/test_authority_outcomes.py::test_every_decision_about_an_outcome_follows_the_rules",
            "tests/test_delegation.py::test_everything_beyond_the_boundary_is_refused_with_its_reason",
            "tests/test_organisation_histories.py::test_every_history_keeps_the_organisation_as_the_rules_say",
        ),
    ),
    Row(
        "AG-100",
        "the boss still writes the delegated outcome",
        tests=(
            "tests/test_authority_outcomes.py::test_every_decision_about_an_outcome_follows_the_rules",
            "tests/test_delegation.py::test_a_boss_reads_all_and_changes_and_judges_what_it_delegated",
        ),
    ),
    Row(
        "AG-101",
        "the boss still reads the whole subtree",
        tests=(
            "tests/test_authority_outcomes.py::test_every_decision_about_an_outcome_follows_the_rules",
            "tests/test_delegation.py::test_who_reads_and_writes_what_after_a_delegation",
            "tests/test_delegation.py::test_a_boss_reads_all_and_changes_and_judges_what_it_delegated",
        ),
    ),
    Row(
        "AG-102",
        "the report only reads its mandate",
        tests=(
            "tests/test_authority_outcomes.py::test_every_decision_about_an_outcome_follows_the_rules",
            "tests/test_delegation.py::test_who_reads_and_writes_what_after_a_delegation",
            "tests/test_delegation.py::test_everything_beyond_the_boundary_is_refused_with_its_reason",
            "tests/test_outcomes.py::test_nobody_completes_their_own_mandate",
        ),
    ),
    Row(
        "AG-103",
        "the report writes all descendants",
        tests=(
            "tests/test_authority_outcomes.py::test_every_decision_about_an_outcome_follows_the_rules",
            "tests/test_delegation.py::test_everything_below_that_is_the_delegators_goes_along",
            "tests/test_outcomes.py::test_whoever_creates_a_part_owns_it",
        ),
    ),
    Row(
        "AG-104",
        "the report reads every ancestor outcome",
        tests=(
            "tests/test_authority_outcomes.py::test_every_decision_about_an_outcome_follows_the_rules",
            "tests/test_delegation.py::test_who_reads_and_writes_what_after_a_delegation",
            "tests/test_outcomes.py::test_a_walk_goes_no_further_than_the_caller_may_read",
        ),
    ),
    Row(
        "AG-105",
        "the report has mail with its boss and can ask for more",
        tests=(
            "tests/test_mail.py::test_a_report_asks_and_its_boss_grants_in_one_step_and_once",
            "tests/test_mail.py::test_a_request_gives_nothing_by_itself_and_never_more_than_the_boss_has",
            "tests/test_mail.py::test_two_who_grant_at_once_grant_once",
            "tests/test_mail.py::test_the_root_agent_asks_the_board",
        ),
    ),
    Row(
        "AG-106",
        "a boss changes no outcome inside the subtree",
        tests=(
            "tests/test_authority_outcomes.py::test_every_decision_about_an_outcome_follows_the_rules",
            "tests/test_delegation.py::test_everything_beyond_the_boundary_is_refused_with_its_reason",
            "tests/test_organisation_histories.py::test_every_history_keeps_the_organisation_as_the_rules_say",
        ),
    ),
    Row(
        "AG-107",
        "a boss does not reach past its own reports",
        tests=(
            "tests/test_authority_outcomes.py::test_every_decision_about_an_outcome_follows_the_rules",
            "tests/test_delegation.py::test_everything_beyond_the_boundary_is_refused_with_its_reason",
            "tests/test_delegation.py::test_a_boss_grants_to_its_own_reports_only",
            "tests/test_organisation_histories.py::test_every_history_keeps_the_organisation_as_the_rules_say",
        ),
    ),
    Row(
        "AG-108",
        "a boss messages, reads, completes and closes what it delegated",
        tests=(
            "tests/test_authority_outcomes.py::test_every_decision_about_an_outcome_follows_the_rules",
            "tests/test_delegation.py::test_a_boss_reads_all_and_changes_and_judges_what_it_delegated",
        ),
    ),
    Row(
        "AG-109",
        "a boss can stop a run and reclaim the outcome",
        tests=(
            "tests/test_authority_outcomes.py::test_every_decision_about_an_outcome_follows_the_rules",
            "tests/test_delegation.py::test_a_reclaim_takes_everything_back",
            "tests/test_delegation.py::test_what_existing_reports_were_given_comes_back_over_any_number_of_levels",
            "tests/test_delegation.py::test_only_what_is_delegated_and_open_can_be_reclaimed",
            "tests/test_delegation.py::test_a_reclaim_and_a_completion_at_the_same_time_take_turns",
            "tests/test_reorganise.py::test_the_end_of_a_former_boss_does_not_touch_who_moved_away",
        ),
    ),
    Row(
        "AG-110",
        "the boss verifies and completes a mandate",
        tests=(
            "tests/test_delegation.py::test_judging_a_mandate_shuts_its_agents_down_at_every_level",
            "tests/test_outcomes.py::test_a_verdict_records_who_judged_and_on_what_evidence",
            "tests/test_outcomes.py::test_nobody_completes_their_own_mandate",
        ),
    ),
    Row(
        "AG-111",
        "an agent closes its own disproven outcomes",
        tests=(
            "tests/test_delegation.py::test_an_agent_ends_its_parts_itself_and_never_its_mandate",
            "tests/test_outcomes.py::test_closing_takes_a_reason_and_what_was_only_for_it",
        ),
    ),
    Row(
        "AG-112",
        "a disproven mandate is reported to the boss",
        tests=(
            "tests/test_delegation.py::test_an_agent_ends_its_parts_itself_and_never_its_mandate",
        ),
    ),
    Row(
        "AG-113",
        "every ending is logged; the reason is in the file",
        tests=(
            "tests/test_delegation.py::test_judging_a_mandate_shuts_its_agents_down_at_every_level",
            "tests/test_delegation.py::test_a_reclaim_takes_everything_back",
            "tests/test_history.py::test_the_history_of_an_outcome_outlives_its_agents",
            "tests/test_outcomes.py::test_the_history_tells_who_did_what_when_and_why",
            "tests/test_outcomes.py::test_the_document_tells_state_reason_and_relations",
        ),
    ),
    Row(
        "AG-114",
        "reclaiming stops all runs in the subtree",
        tests=(
            "tests/test_delegation.py::test_a_reclaim_takes_everything_back",
            "tests/test_delegation.py::test_what_existing_reports_were_given_comes_back_over_any_number_of_levels",
        ),
    ),
    Row(
        "AG-115",
        "reclaiming deactivates agents and deletes none",
        tests=(
            "tests/test_delegation.py::test_judging_a_mandate_shuts_its_agents_down_at_every_level",
            "tests/test_delegation.py::test_a_reclaim_takes_everything_back",
            "tests/test_organisation.py::test_an_agent_that_left_is_kept_with_all_that_it_was",
            "tests/test_organisation_histories.py::test_every_history_keeps_the_organisation_as_the_rules_say",
        ),
    ),
    Row(
        "AG-116",
        "reclaiming gives the boss the outcomes, with write",
        tests=(
            "tests/test_delegation.py::test_a_reclaim_takes_everything_back",
            "tests/test_delegation.py::test_a_boss_keeps_what_it_held_for_the_outcome_itself",
            "tests/test_delegation.py::test_what_existing_reports_were_given_comes_back_over_any_number_of_levels",
            "tests/test_delegation.py::test_what_was_reclaimed_can_be_delegated_again",
            "tests/test_delegation.py::test_a_reclaim_and_a_completion_at_the_same_time_take_turns",
            "tests/test_delegation.py::test_ten_thousand_outcomes_change_hands_in_one_transaction",
            "tests/test_organisation_histories.py::test_every_history_keeps_the_organisation_as_the_rules_say",
        ),
    ),
    Row(
        "AG-117",
        "reclaiming revokes the grants of the outcomes",
        tests=(
            "tests/test_delegation.py::test_a_reclaim_takes_everything_back",
            "tests/test_delegation.py::test_a_boss_keeps_what_it_held_for_the_outcome_itself",
            "tests/test_delegation.py::test_what_existing_reports_were_given_comes_back_over_any_number_of_levels",
            "tests/test_organisation_histories.py::test_every_history_keeps_the_organisation_as_the_rules_say",
        ),
    ),
    Row(
        "AG-118",
        "after reclaiming, documents and histories stay readable",
        tests=(
            "tests/test_delegation.py::test_a_reclaim_takes_everything_back",
            "tests/test_organisation.py::test_a_state_document_is_written_by_its_agent_and_read_by_its_bosses",
            "tests/test_organisation.py::test_an_agent_that_left_is_kept_with_all_that_it_was",
        ),
    ),
    Row(
        "AG-119",
        "one prompt template covers tools, work and completion",
        tests=(
            "tests/test_prompt.py::test_the_beginning_is_the_same_in_every_run_and_memory_comes_after_it",
            "tests/test_prompt.py::test_it_says_how_to_work_and_is_short",
        ),
    ),
    Row(
        "AG-120",
        "signs that delegation is due; mail between siblings",
        tests=(
            "tests/test_memory.py::test_signs_that_delegation_is_due_are_among_the_loose_ends",
            "tests/test_memory.py::test_siblings_write_to_each_other_where_the_company_lets_them",
        ),
    ),
    Row(
        "AG-121",
        "a capability can need approval at each use",
        tests=(
            "tests/test_mcp_governance.py::test_a_tool_in_mode_ask_says_what_it_waits_for",
            "tests/test_parking.py::test_a_message_is_sent_when_it_is_approved_once_and_as_it_was_written",
            "tests/test_parking.py::test_reading_is_approved_for_one_reading",
            "tests/test_parking.py::test_a_write_waits_with_its_bytes_which_nobody_sweeps",
        ),
    ),
    Row(
        "AW-01",
        "creating an agent is a base tool like the others",
        tests=(
            "tests/test_mcp_governance.py::test_tools_are_listed_for_those_who_have_a_use_for_them",
        ),
    ),
    Row(
        "AW-02",
        "the tool needs a name; three parameters are optional",
        tests=(
            "tests/test_mcp_governance.py::test_aliases_stand_in_for_names_that_are_missing",
            "tests/test_create_agent.py::test_wrong_arguments_ask_nobody",
        ),
    ),
    Row(
        "AW-03",
        "other spellings of the automatic reply are accepted",
        tests=("tests/test_mcp_governance.py::test_aliases_stand_in_for_names_that_are_missing",),
    ),
    Row(
        "AW-04",
        "other spellings of the next agent are accepted",
        tests=("tests/test_mcp_governance.py::test_aliases_stand_in_for_names_that_are_missing",),
    ),
    Row(
        "AW-05",
        "a spelling never overrides the proper key",
        tests=("tests/test_mcp_governance.py::test_aliases_stand_in_for_names_that_are_missing",),
    ),
    Row(
        "AW-06",
        "other tools keep their own spellings",
        tests=("tests/test_mcp_governance.py::test_other_tools_know_no_such_aliases",),
    ),
    Row(
        "AW-07",
        "only proper names are stored",
        tests=(
            "tests/test_mcp_governance.py::test_aliases_stand_in_for_names_that_are_missing",
            "tests/test_create_agent.py::test_what_is_not_said_has_its_default",
        ),
    ),
    Row(
        "AW-08",
        "without a name nothing is asked and nothing is made",
        tests=(
            "tests/test_mcp_governance.py::test_without_a_name_it_fails_before_anybody_is_asked",
            "tests/test_create_agent.py::test_wrong_arguments_ask_nobody",
        ),
    ),
    Row(
        "AW-09",
        "the tool creates only after a yes",
        tests=(
            "tests/test_mcp_governance.py::test_every_result_has_one_shape_byte_for_byte",
            "tests/test_create_agent.py::test_nothing_is_created_before_somebody_said_yes",
        ),
    ),
    Row(
        "AW-10",
        "the approval is inside the tool, on every path",
        tests=(
            "tests/test_mcp_governance.py::test_there_is_no_way_around_the_gate",
            "tests/test_create_agent.py::test_nothing_is_created_before_somebody_said_yes",
            "tests/test_create_agent.py::test_who_may_not_create_agents_is_refused_without_asking",
        ),
    ),
    Row(
        "AW-11",
        "a denied creation answers in a fixed form",
        tests=(
            "tests/test_mcp_governance.py::test_every_result_has_one_shape_byte_for_byte",
            "tests/test_create_agent.py::test_denied_means_not_created_and_not_asked_again_at_once",
        ),
    ),
    Row(
        "AW-12",
        "a timed-out creation answers in a fixed form",
        tests=(
            "tests/test_mcp_governance.py::test_it_waits_no_longer_than_it_may",
            "tests/test_create_agent.py::test_timed_out_means_not_created",
        ),
    ),
    Row(
        "AW-13",
        "with nobody to ask the tool refuses",
        tests=(
            "tests/test_mcp_governance.py::test_every_result_has_one_shape_byte_for_byte",
            "tests/test_create_agent.py::test_timed_out_means_not_created",
        ),
    ),
    Row(
        "AW-14",
        "the tool uses the ordinary approval",
        tests=(
            "tests/test_mcp_governance.py::test_every_result_has_one_shape_byte_for_byte",
            "tests/test_create_agent.py::test_nothing_is_created_before_somebody_said_yes",
        ),
    ),
    Row(
        "AW-15",
        "no page and no route changes for the tool",
        tests=(
            "tests/test_http_governance.py::test_the_board_creates_directly_and_agents_do_not",
            "tests/test_web_approvals.py::test_create_agent_is_decided_on_the_same_page_and_makes_one_agent_or_none",
        ),
    ),
    Row(
        "AW-16",
        "one function writes the prompt of a created agent",
        tests=("tests/test_create_agent.py::test_the_prompt_is_the_same_byte_for_byte",),
    ),
    Row(
        "AW-17",
        "that prompt is fixed to the letter",
        tests=("tests/test_create_agent.py::test_the_prompt_is_the_same_byte_for_byte",),
    ),
    Row(
        "AW-18",
        "without a next agent the human is next",
        tests=(
            "tests/test_mcp_governance.py::test_aliases_stand_in_for_names_that_are_missing",
            "tests/test_create_agent.py::test_the_prompt_is_the_same_byte_for_byte",
        ),
    ),
    Row(
        "AW-19",
        "a created agent is of the default type",
        tests=(
            "tests/test_mcp_governance.py::test_aliases_stand_in_for_names_that_are_missing",
            "tests/test_create_agent.py::test_what_is_not_said_has_its_default",
        ),
    ),
    Row(
        "AW-20",
        "the automatic reply has a default",
        tests=(
            "tests/test_mcp_governance.py::test_aliases_stand_in_for_names_that_are_missing",
            "tests/test_create_agent.py::test_what_is_not_said_has_its_default",
        ),
    ),
    Row(
        "AW-21",
        "the provider comes from the company, else a default",
        tests=(
            "tests/test_mcp_governance.py::test_provider_and_model_are_the_company_s_when_it_is_created",
            "tests/test_create_agent.py::test_what_is_not_said_has_its_default",
            "tests/test_create_agent.py::test_provider_and_model_are_those_of_the_company_when_it_happens",
        ),
    ),
    Row(
        "AW-22",
        "the model comes from the company, else a default",
        tests=(
            "tests/test_mcp_governance.py::test_provider_and_model_are_the_company_s_when_it_is_created",
            "tests/test_create_agent.py::test_what_is_not_said_has_its_default",
            "tests/test_create_agent.py::test_provider_and_model_are_those_of_the_company_when_it_happens",
        ),
    ),
    Row(
        "AW-23",
        "provider and model are looked up at execution",
        tests=(
            "tests/test_mcp_governance.py::test_provider_and_model_are_the_company_s_when_it_is_created",
            "tests/test_create_agent.py::test_provider_and_model_are_those_of_the_company_when_it_happens",
        ),
    ),
    Row(
        "AW-24",
        "the tool creates through the ordinary service",
        tests=("tests/test_create_agent.py::test_what_is_not_said_has_its_default",),
    ),
    Row(
        "AW-25",
        "success, denial and error have fixed forms",
        tests=(
            "tests/test_mcp_governance.py::test_every_result_has_one_shape_byte_for_byte",
            "tests/test_create_agent.py::test_what_was_created_is_told_once_and_created_once",
        ),
    ),
    Row(
        "AW-26",
        "the role is cleaned and bounded before use",
        tests=(
            "tests/test_mcp_governance.py::test_a_role_cannot_break_out_of_its_sentence",
            "tests/test_create_agent.py::test_a_role_is_one_bounded_line_whatever_it_says",
        ),
    ),
    Row(
        "AW-27",
        "a name that is taken gives a clear error",
        tests=(
            "tests/test_mcp_governance.py::test_every_result_has_one_shape_byte_for_byte",
            "tests/test_create_agent.py::test_a_name_that_is_taken_is_said_before_anybody_is_asked",
        ),
    ),
    Row(
        "AW-28",
        "the tool is tested without a model",
        tests=("tests/test_mcp_governance.py::test_every_result_has_one_shape_byte_for_byte",),
    ),
    Row(
        "AW-29",
        "deny makes no agent and approve makes one, seen by a user",
        tests=(
            "tests/test_create_agent.py::test_denied_means_not_created_and_not_asked_again_at_once",
            "tests/test_create_agent.py::test_what_was_created_is_told_once_and_created_once",
            "tests/test_mcp_governance.py::test_every_result_has_one_shape_byte_for_byte",
            "tests/test_web_approvals.py::test_create_agent_is_decided_on_the_same_page_and_makes_one_agent_or_none",
        ),
    ),
    Row(
        "HH-01",
        "who reports to whom is one record, kept by Remit",
        tests=(
            "tests/test_history.py::test_who_reported_to_whom_at_any_time",
            "tests/test_organisation.py::test_everybody_has_one_boss_an_agent_or_a_user",
        ),
    ),
    Row(
        "HH-02",
        "an agent without a boss agent is a root agent",
        tests=(
            "tests/test_organisation.py::test_a_company_begins_with_a_lasting_mandate_and_a_root_agent_below_a_user",
            "tests/test_organisation.py::test_being_at_the_root_gives_no_right_by_itself",
        ),
    ),
    Row(
        "HH-03",
        "a new agent has a default place in the tree",
        tests=("tests/test_organisation.py::test_everybody_has_one_boss_an_agent_or_a_user",),
    ),
    Row(
        "HH-04",
        "an agent cannot choose its boss by configuration",
        tests=(
            "tests/test_organisation.py::test_no_configuration_moves_an_agent_and_no_move_touches_its_configuration",
        ),
    ),
    Row(
        "HH-05",
        "moving an agent leaves its configuration alone",
        tests=(
            "tests/test_organisation.py::test_no_configuration_moves_an_agent_and_no_move_touches_its_configuration",
            "tests/test_reorganise.py::test_a_moved_agent_works_for_its_new_boss",
        ),
    ),
    Row(
        "HH-06",
        "a missing tree is read safely",
        tests=(
            "tests/test_organisation.py::test_a_damaged_tree_gives_nobody_a_say_and_hangs_nothing",
        ),
    ),
    Row(
        "HH-07",
        "reconciling adds new agents and drops removed ones",
        tests=("tests/test_organisation.py::test_a_second_start_finds_the_tree_as_it_was",),
    ),
    Row(
        "HH-08",
        "reconciling keeps the places a user chose",
        tests=("tests/test_organisation.py::test_a_second_start_finds_the_tree_as_it_was",),
    ),
    Row(
        "HH-09",
        "a run learns its boss from the environment",
        tests=(
            "tests/test_adapter_conformance.py::test_a_run_ends_says_what_it_took_and_leaves_nothing",
        ),
    ),
    Row(
        "HH-10",
        "an agent's view shows its boss and stays current",
        tests=(
            "tests/test_web_agent.py::test_the_boss_of_an_agent_is_current_without_reloading",
            "tests/test_web_org.py::test_the_tree_shows_who_reports_to_whom_and_stays_current",
        ),
    ),
    Row(
        "HH-11",
        "the dashboard draws the tree and moves agents",
        tests=(
            "tests/test_web_org.py::test_a_move_shows_whose_authority_changes_before_it_happens_and_can_be_undone",
            "tests/test_web_org.py::test_the_tree_shows_who_reports_to_whom_and_stays_current",
        ),
    ),
    Row(
        "HH-12",
        "any ancestor starts, stops and restarts an agent",
        tests=(
            "tests/test_organisation.py::test_any_ancestor_and_nobody_else_controls_an_agent",
            "tests/test_http_runs.py::test_an_ancestor_stops_starts_restarts_and_aborts_and_nobody_else",
            "tests/test_mcp_governance.py::test_an_ancestor_stops_starts_and_restarts_and_nothing_else_is_offered",
        ),
    ),
    Row(
        "HH-13",
        "any agent may ask for a report of its own",
        tests=(
            "tests/test_mcp_governance.py::test_the_official_client_hires_with_a_revision_round",
            "tests/test_hiring.py::test_an_agent_hires_below_itself_and_nowhere_else",
        ),
    ),
    Row(
        "HH-14",
        "any ancestor proposes a change of configuration",
        tests=(
            "tests/test_http_governance.py::test_a_configuration_changes_by_revisions_and_rolls_back",
            "tests/test_mcp_governance.py::test_an_ancestor_proposes_a_configuration_and_the_board_decides",
            "tests/test_configuration.py::test_any_ancestor_proposes_and_the_board_decides",
        ),
    ),
    Row(
        "HH-15",
        "any ancestor reads an agent's logs",
        tests=(
            "tests/test_organisation.py::test_a_state_document_is_written_by_its_agent_and_read_by_its_bosses",
            "tests/test_organisation.py::test_an_activity_log_is_appended_by_submitting_and_by_nothing_else",
            "tests/test_http_runs.py::test_a_log_is_for_the_agent_itself_and_for_those_above",
            "tests/test_mcp_governance.py::test_an_ancestor_reads_the_end_of_what_a_run_printed",
        ),
    ),
    Row(
        "HH-16",
        "any ancestor cancels a question or reminder",
        tests=(
            "tests/test_mail_authority.py::test_owners_and_those_above_cancel_and_only_owners_plan_in_every_tree",
            "tests/test_schedules.py::test_a_reminder_is_cancelled_by_its_owner_or_from_above",
            "tests/test_questions.py::test_a_question_is_cancelled_by_its_owner_or_from_above",
        ),
    ),
    Row(
        "HH-17",
        "mail flows among boss, siblings, self and descendants",
        tests=(
            "tests/test_mail.py::test_the_common_boss_can_read_what_its_reports_write_to_each_other",
            "tests/test_mail_authority.py::test_who_may_write_to_whom_follows_the_rules_in_every_tree",
            "tests/test_mail_authority.py::test_every_pair_under_every_setting",
        ),
    ),
    Row(
        "HH-18",
        "any other pair needs an explicit capability",
        tests=(
            "tests/test_mail_authority.py::test_who_may_write_to_whom_follows_the_rules_in_every_tree",
            "tests/test_mail_authority.py::test_a_capability_that_does_not_fit_opens_nothing",
            "tests/test_mail_authority.py::test_every_pair_under_every_setting",
            "tests/test_mail_authority.py::test_a_message_capability_opens_one_pair_in_one_direction",
        ),
    ),
    Row(
        "HH-19",
        "only root agents ask for an update of shared inputs",
        tests=(
            "tests/test_organisation.py::test_any_ancestor_and_nobody_else_controls_an_agent",
            "tests/test_organisation.py::test_being_at_the_root_gives_no_right_by_itself",
        ),
    ),
    Row(
        "HH-20",
        "a stored cycle cannot hang the walk to the top",
        tests=(
            "tests/test_organisation.py::test_a_damaged_tree_gives_nobody_a_say_and_hangs_nothing",
            "tests/test_outcomes.py::test_a_cycle_written_around_remit_hangs_nothing",
        ),
    ),
    Row(
        "HH-21",
        "the root agent has a stable name and address",
        tests=(
            "tests/test_organisation.py::test_no_agent_name_and_no_folder_is_special_in_the_code",
            "tests/test_organisation.py::test_the_root_agent_can_go_and_another_take_its_name",
        ),
    ),
    Row(
        "HH-22",
        "renaming the root agent happens once and can be repeated",
        tests=(
            "tests/test_organisation.py::test_no_agent_name_and_no_folder_is_special_in_the_code",
            "tests/test_organisation.py::test_the_root_agent_can_go_and_another_take_its_name",
        ),
    ),
    Row(
        "HH-23",
        "the root agent exists after start",
        tests=(
            "tests/test_organisation.py::test_a_company_begins_with_a_lasting_mandate_and_a_root_agent_below_a_user",
            "tests/test_organisation.py::test_a_second_start_finds_the_tree_as_it_was",
        ),
    ),
    Row(
        "HH-24",
        "a new agent's configuration starts from a seed",
        tests=(
            "tests/test_configuration.py::test_the_board_changes_it_and_every_revision_stays",
            "tests/test_configuration.py::test_any_ancestor_proposes_and_the_board_decides",
            "tests/test_hiring.py::test_the_configuration_of_a_hire_is_its_first_revision",
        ),
    ),
    Row(
        "HH-25",
        "a change of configuration is submitted for approval",
        tests=(
            "tests/test_mcp_governance.py::test_an_ancestor_proposes_a_configuration_and_the_board_decides",
            "tests/test_configuration.py::test_a_change_is_taken_back_as_a_new_revision",
            "tests/test_configuration.py::test_any_ancestor_proposes_and_the_board_decides",
        ),
    ),
    Row(
        "HH-26",
        "an agent can still be asked for without a configuration, as a hire like any other",
        tests=("tests/test_hiring.py::test_what_is_not_said_is_as_at_the_boss",),
    ),
    Row(
        "HH-27",
        "control operations act on an existing agent",
        tests=("tests/test_runs.py::test_control_is_for_those_above_and_acts_on_who_exists",),
    ),
    Row(
        "HH-28",
        "updating shared inputs is a capability",
        tests=(
            "tests/test_repos.py::test_an_agent_that_configures_the_instance_knows_and_fetches",
        ),
    ),
    Row(
        "HH-29",
        "a report's output can be read",
        tests=("tests/test_runs.py::test_what_a_run_printed_is_read_by_those_above",),
    ),
    Row(
        "HH-30",
        "every agent can wake itself",
        tests=(
            "tests/test_mail.py::test_a_deferred_message_is_not_there_before_its_time",
            "tests/test_mail_authority.py::test_owners_and_those_above_cancel_and_only_owners_plan_in_every_tree",
            "tests/test_schedules.py::test_a_reminder_comes_to_its_owner_once",
        ),
    ),
    Row(
        "HH-31",
        "the root agent sees all configurations",
        tests=(
            "tests/test_organisation.py::test_no_agent_name_and_no_folder_is_special_in_the_code",
        ),
    ),
    Row(
        "HH-32",
        "an agent writes in its descendants' folders only",
        tests=("tests/test_memory.py::test_an_agent_reaches_what_is_below_it_and_no_other_folder",),
    ),
    Row(
        "HH-33",
        "reading shared inputs needs a capability",
        tests=(
            "tests/test_repos.py::test_an_agent_that_configures_the_instance_knows_and_fetches",
        ),
    ),
    Row(
        "HH-34",
        "one operation alone writes the shared lock",
        tests=(
            "tests/test_organisation.py::test_no_agent_name_and_no_folder_is_special_in_the_code",
        ),
    ),
    Row(
        "HH-35",
        "state has one place for every agent",
        tests=(
            "tests/test_memory.py::test_every_agent_has_one_home_and_nothing_in_it_goes_into_a_prompt",
        ),
    ),
    Row(
        "HH-36",
        "one prompt is rendered from the capabilities",
        tests=("tests/test_prompt.py::test_it_is_rendered_from_what_the_agent_may",),
    ),
    Row(
        "HH-37",
        "an agent sees the tools of its capabilities",
        tests=(
            "tests/test_mcp_governance.py::test_tools_are_listed_for_those_who_have_a_use_for_them",
        ),
    ),
    Row(
        "HH-38",
        "an agent sees the loose ends of itself and below",
        tests=(
            "tests/test_organisation.py::test_any_ancestor_and_nobody_else_controls_an_agent",
            "tests/test_mail_authority.py::test_owners_and_those_above_cancel_and_only_owners_plan_in_every_tree",
            "tests/test_waiting.py::test_loose_ends_are_ones_own_and_of_everybody_below",
            "tests/test_waiting.py::test_a_dead_letter_is_revived_from_above_and_not_by_its_receiver",
        ),
    ),
    Row(
        "HH-39",
        "a question is cancelled by owner or ancestor",
        tests=(
            "tests/test_mail_authority.py::test_owners_and_those_above_cancel_and_only_owners_plan_in_every_tree",
            "tests/test_questions.py::test_a_question_is_cancelled_by_its_owner_or_from_above",
            "tests/test_questions.py::test_the_beginning_of_an_id_is_enough_for_those_concerned",
        ),
    ),
    Row(
        "HH-40",
        "a reminder is cancelled by owner or ancestor",
        tests=(
            "tests/test_mail_authority.py::test_owners_and_those_above_cancel_and_only_owners_plan_in_every_tree",
            "tests/test_schedules.py::test_a_reminder_is_cancelled_by_its_owner_or_from_above",
            "tests/test_schedules.py::test_the_beginning_of_an_id_is_enough_to_cancel",
        ),
    ),
    Row(
        "HH-41",
        "an agent removes descendants, never itself or above",
        tests=("tests/test_organisation.py::test_any_ancestor_and_nobody_else_controls_an_agent",),
    ),
    Row(
        "HH-42",
        "crashed agents are noticed; the root agent restarts",
        tests=(
            "tests/test_runs.py::test_a_boss_is_told_once_for_each_cause_and_failures_back_off_and_stop",
            "tests/test_runs.py::test_remit_itself_goes_on_with_the_root_agent",
        ),
    ),
    Row(
        "HH-43",
        "an agent may use lightweight temporary helpers",
        tests=(
            "tests/test_jobs.py::test_mail_to_the_background_is_accepted_at_once_and_answered_in_reply",
            "tests/test_jobs.py::test_the_board_can_forbid_it_or_be_asked_each_time",
        ),
    ),
    Row(
        "HH-44",
        "what temporary helpers inherit and share is settled",
        tests=("tests/test_jobs.py::test_nothing_of_a_job_is_kept_for_the_next",),
    ),
    Row(
        "HB-01",
        "an agent has a name, a token and an inbox",
        tests=(
            "tests/test_identity.py::test_an_agent_has_a_name_a_token_and_the_id_of_its_mandate",
        ),
    ),
    Row(
        "HB-02",
        "names follow one pattern",
        tests=(
            "tests/test_identity.py::test_good_names_are_taken",
            "tests/test_identity.py::test_bad_names_are_refused",
        ),
    ),
    Row(
        "HB-03",
        "names are unique without regard to case",
        tests=(
            "tests/test_identity.py::test_names_are_unique_among_the_living_without_regard_to_case",
            "tests/test_identity.py::test_of_many_agents_of_one_name_made_at_once_one_comes_to_be",
        ),
    ),
    Row(
        "HB-04",
        "the name background is reserved",
        tests=("tests/test_identity.py::test_reserved_names_are_refused",),
    ),
    Row(
        "HB-05",
        "a token is random and long enough",
        tests=(
            "tests/test_identity.py::test_a_token_says_its_kind_and_has_256_random_bits",
            "tests/test_identity.py::test_each_kind_of_token_is_issued_with_its_prefix",
        ),
    ),
    Row(
        "HB-06",
        "a token is shown once and never again",
        tests=(
            "tests/test_identity.py::test_each_kind_of_token_is_issued_with_its_prefix",
            "tests/test_identity.py::test_only_the_digest_of_a_token_is_anywhere_in_the_database_or_the_home",
            "tests/test_identity.py::test_a_token_is_shown_once_and_a_repeat_of_the_request_does_not_show_it_again",
        ),
    ),
    Row(
        "HB-07",
        "a token is stored so that it cannot be read back",
        tests=(
            "tests/test_identity.py::test_only_the_digest_of_a_token_is_anywhere_in_the_database_or_the_home",
        ),
    ),
    Row(
        "HB-08",
        "a policy says which operation needs which level",
        tests=(
            "tests/test_permissions.py::test_a_level_is_a_bundle_of_rights_and_replaces_what_was_there",
        ),
    ),
    Row(
        "HB-09",
        "an agent has one of four permission levels",
        tests=(
            "tests/test_http_governance.py::test_levels_are_the_board_s_to_give",
            "tests/test_permissions.py::test_a_level_is_a_bundle_of_rights_and_replaces_what_was_there",
        ),
    ),
    Row(
        "HB-10",
        "boss operations need the highest level",
        tests=(
            "tests/test_mcp_governance.py::test_an_agent_with_that_capability_decides_about_those_below",
            "tests/test_approvals.py::test_it_is_routed_to_the_first_above_who_may_decide",
            "tests/test_permissions.py::test_a_level_is_a_bundle_of_rights_and_replaces_what_was_there",
        ),
    ),
    Row(
        "HB-11",
        "a permission level never changes who sent a message",
        tests=(
            "tests/test_identity.py::test_every_event_carries_the_identity_of_the_token",
            "tests/test_identity.py::test_the_widest_rights_do_not_make_an_agent_somebody_else",
        ),
    ),
    Row(
        "HB-12",
        "whether the board wrote comes from the channel's identity",
        tests=(
            "tests/test_mail.py::test_the_sender_is_whoever_the_token_says",
            "tests/test_turn.py::test_no_body_subject_or_name_can_pass_for_a_header",
            "tests/test_turn.py::test_only_what_a_person_sent_is_from_the_board",
        ),
    ),
    Row(
        "HB-13",
        "Claude and Codex run through their CLIs",
        tests=(
            "tests/test_real_agents.py::test_a_wish_is_worked_on_and_answered_in_a_new_conversation",
        ),
    ),
    Row(
        "HB-14",
        "providers use their shared homes",
        tests=(
            "tests/test_adapter_runs.py::test_the_shared_login_is_used_and_no_variable_leads_elsewhere",
        ),
    ),
    Row(
        "HB-15",
        "the system prompt is passed by flag",
        tests=(
            "tests/test_real_agents.py::test_a_wish_is_worked_on_and_answered_in_a_new_conversation",
            "tests/test_adapter_runs.py::test_the_system_prompt_is_given_by_flag",
        ),
    ),
    Row(
        "HB-16",
        "without a model the provider's default is used",
        tests=(
            "tests/test_adapters.py::test_the_model_and_its_effort_can_be_left_to_the_provider",
            "tests/test_configuration.py::test_the_board_changes_it_and_every_revision_stays",
        ),
    ),
    Row(
        "HB-17",
        "effort has five values or the default",
        tests=(
            "tests/test_adapters.py::test_the_model_and_its_effort_can_be_left_to_the_provider",
            "tests/test_configuration.py::test_the_board_changes_it_and_every_revision_stays",
        ),
    ),
    Row(
        "HB-18",
        "provider settings are set at hire or later",
        tests=(
            "tests/test_hiring.py::test_permissions_and_levels_come_with_a_hire_from_those_who_set_them",
            "tests/test_permissions.py::test_a_level_is_a_bundle_of_rights_and_replaces_what_was_there",
            "tests/test_configuration.py::test_the_board_changes_it_and_every_revision_stays",
        ),
    ),
    Row(
        "HB-19",
        "full access to the machine is a named mode",
        tests=(
            "tests/test_adapter_runs.py::test_full_access_is_said_by_name_and_never_the_default",
        ),
    ),
    Row(
        "HB-20",
        "the documentation says what a workspace does not protect",
        tests=("tests/test_docs.py::test_the_documents_say_what_a_workspace_does_not_protect",),
    ),
    Row(
        "HB-21",
        "a script checks real providers in a folder of its own",
        tests=(
            "tests/test_real_agents.py::test_a_wish_is_worked_on_and_answered_in_a_new_conversation",
            "tests/test_real_agents.py::test_a_conversation_goes_on_in_the_next_run_and_each_run_counts_for_itself",
        ),
    ),
    Row(
        "HB-22",
        "a persona file exists and is not in the prompt",
        tests=(
            "tests/test_memory.py::test_every_agent_has_one_home_and_nothing_in_it_goes_into_a_prompt",
        ),
    ),
    Row(
        "HB-23",
        "memory enters each new session, shortened",
        tests=("tests/test_prompt.py::test_memory_is_bounded_in_bytes_and_says_where_it_was_cut",),
    ),
    Row(
        "HB-24",
        "daily notes can enter a session, shortened",
        tests=(
            "tests/test_memory.py::test_daily_notes_are_shown_to_who_wants_them_cut_and_the_latest_first",
        ),
    ),
    Row(
        "HB-25",
        "an agent's home can be made, found and removed",
        tests=("tests/test_purge.py::test_what_an_agent_left_goes_and_what_it_did_stays",),
    ),
    Row(
        "HB-26",
        "instructions are made anew for each session",
        tests=("tests/test_prompt.py::test_it_is_rendered_from_what_the_agent_may",),
    ),
    Row(
        "HB-27",
        "no other persona file enters the prompt",
        tests=(
            "tests/test_memory.py::test_every_agent_has_one_home_and_nothing_in_it_goes_into_a_prompt",
        ),
    ),
    Row(
        "HB-28",
        "prompts are templates with documented variables",
        tests=("tests/test_prompt.py::test_the_template_says_which_variables_it_has",),
    ),
    Row(
        "HB-29",
        "mail, a due time and a start with work left wake an agent",
        tests=(
            "tests/test_waking.py::test_whatever_gives_an_agent_something_to_do_wakes_it",
            "tests/test_waking.py::test_what_was_put_off_is_begun_when_its_time_comes",
            "tests/test_waking.py::test_a_start_finds_what_was_left",
        ),
    ),
    Row(
        "HB-30",
        "two runs of one agent never overlap",
        tests=(
            "tests/test_runs.py::test_of_many_workers_that_want_an_agent_one_gets_it",
            "tests/test_runs.py::test_a_silent_worker_loses_its_run_and_its_late_calls_are_refused",
            "tests/test_runtime_crash.py::test_a_stopped_worker_that_goes_on_has_lost_its_run",
            "tests/test_runtime_crash.py::test_several_workers_share_a_database_while_some_of_them_are_killed",
            "tests/test_runtime_crash.py::test_whatever_a_stopped_worker_does_when_it_goes_on_is_refused",
            "tests/test_runtime_kills.py::test_workers_and_agents_on_one_database_are_killed_at_random_moments",
        ),
    ),
    Row(
        "HB-31",
        "a run continues or opens a session",
        tests=(
            "tests/test_prompt.py::test_a_session_goes_on_as_long_as_its_policy_lets_it",
            "tests/test_prompt.py::test_what_a_run_leaves_to_go_on_with_is_kept_and_forgotten",
        ),
    ),
    Row(
        "HB-32",
        "a turn takes a bounded number of messages",
        tests=("tests/test_turn.py::test_a_turn_takes_ten_and_says_how_many_wait",),
    ),
    Row(
        "HB-33",
        "messages are marked when a run has read them",
        tests=(
            "tests/test_mail.py::test_what_a_run_acknowledges_never_comes_again",
            "tests/test_mail.py::test_what_a_run_took_up_is_done_when_it_ends_well_or_is_cancelled",
            "tests/test_mail_delivery.py::test_nothing_is_lost_repeated_or_out_of_order_whatever_happens",
            "tests/test_mail_delivery.py::test_the_same_on_a_server",
        ),
    ),
    Row(
        "HB-34",
        "a failed run does not lose its messages",
        tests=(
            "tests/test_mail.py::test_a_run_that_fails_gives_back_and_after_three_a_person_must_look",
            "tests/test_mail.py::test_a_message_to_be_tried_once_is_tried_once",
            "tests/test_mail.py::test_what_a_run_took_up_is_done_when_it_ends_well_or_is_cancelled",
            "tests/test_mail.py::test_after_a_crash_a_restart_returns_what_was_taken_up",
            "tests/test_mail_delivery.py::test_nothing_is_lost_repeated_or_out_of_order_whatever_happens",
            "tests/test_mail_delivery.py::test_the_same_on_a_server",
        ),
    ),
    Row(
        "HB-35",
        "every run is recorded",
        tests=("tests/test_runs.py::test_the_record_of_a_run_is_complete",),
    ),
    Row(
        "HB-36",
        "messages left over cause another turn at once",
        tests=(
            "tests/test_runs.py::test_a_run_goes_round_again_exactly_when_something_is_left",
            "tests/test_worker.py::test_more_mail_than_fits_a_turn_causes_another_at_once",
        ),
    ),
    Row(
        "HB-37",
        "a turn's text has a fixed form",
        tests=(
            "tests/test_turn.py::test_no_body_subject_or_name_can_pass_for_a_header",
            "tests/test_turn.py::test_ordinary_text_of_every_script_comes_through_unchanged",
            "tests/test_turn.py::test_a_turn_has_a_fixed_form",
            "tests/test_turn.py::test_only_what_a_person_sent_is_from_the_board",
            "tests/test_turn.py::test_the_short_id_of_a_turn_names_its_message",
        ),
    ),
    Row(
        "HB-38",
        "each message is shown on its own",
        tests=(
            "tests/test_turn.py::test_no_body_subject_or_name_can_pass_for_a_header",
            "tests/test_turn.py::test_a_turn_has_a_fixed_form",
            "tests/test_turn.py::test_a_turn_takes_ten_and_says_how_many_wait",
        ),
    ),
    Row(
        "HB-39",
        "applying a setup keeps the record of runs",
        tests=("tests/test_apply.py::test_applying_clears_nothing_of_the_record",),
    ),
    Row(
        "HB-40",
        "mail to the background address runs a job",
        tests=(
            "tests/test_job_agents.py::test_its_commands_find_the_attachments_and_no_token",
            "tests/test_jobs.py::test_mail_to_the_background_is_accepted_at_once_and_answered_in_reply",
            "tests/test_jobs.py::test_attachments_lie_beside_it_to_be_read",
        ),
    ),
    Row(
        "HB-41",
        "a job's result is the provider's final output",
        tests=(
            "tests/test_job_agents.py::test_the_last_word_is_the_answer_and_the_first_is_only_the_text",
            "tests/test_jobs.py::test_mail_to_the_background_is_accepted_at_once_and_answered_in_reply",
        ),
    ),
    Row(
        "HB-42",
        "the number of jobs at once is bounded",
        tests=(
            "tests/test_jobs.py::test_four_at_once_unless_told_otherwise_within_bounds",
            "tests/test_jobs.py::test_a_number_that_is_none_is_said",
            "tests/test_jobs.py::test_of_forty_jobs_never_more_run_at_once_than_allowed",
        ),
    ),
    Row(
        "HB-43",
        "a job gets no instructions from Remit",
        tests=(
            "tests/test_job_agents.py::test_the_last_word_is_the_answer_and_the_first_is_only_the_text",
            "tests/test_jobs.py::test_a_job_is_told_its_text_and_nothing_of_remit",
        ),
    ),
    Row(
        "HB-44",
        "a job gets no token",
        tests=(
            "tests/test_job_agents.py::test_its_commands_find_the_attachments_and_no_token",
            "tests/test_jobs.py::test_a_job_is_told_its_text_and_nothing_of_remit",
        ),
    ),
    Row(
        "HB-45",
        "a job has the access of an ordinary run",
        tests=("tests/test_jobs.py::test_a_job_is_held_by_the_sandbox_of_its_sender",),
    ),
    Row(
        "HB-46",
        "a job takes its settings from the sender",
        tests=(
            "tests/test_job_agents.py::test_the_last_word_is_the_answer_and_the_first_is_only_the_text",
            "tests/test_jobs.py::test_a_job_is_set_up_as_its_sender_was_when_it_asked",
        ),
    ),
    Row(
        "HB-47",
        "a job answers its sender, in reply",
        tests=(
            "tests/test_jobs.py::test_mail_to_the_background_is_accepted_at_once_and_answered_in_reply",
            "tests/test_jobs.py::test_the_last_words_of_a_run_can_be_run",
        ),
    ),
    Row(
        "HB-48",
        "a failed job says so in its answer",
        tests=(
            "tests/test_jobs.py::test_a_job_that_fails_says_why_in_its_answer",
            "tests/test_jobs.py::test_who_cannot_do_jobs_is_told",
        ),
    ),
    Row(
        "HB-49",
        "a job without a known sender is dropped and logged",
        tests=(
            "tests/test_jobs.py::test_what_a_person_sends_there_is_refused_recorded_and_dropped",
            "tests/test_jobs.py::test_jobs_of_somebody_who_is_gone_are_dropped_and_recorded",
        ),
    ),
    Row(
        "HB-50",
        "a job keeps nothing for the next one",
        tests=("tests/test_jobs.py::test_nothing_of_a_job_is_kept_for_the_next",),
    ),
    Row(
        "HB-51",
        "a job's request counts as read when accepted",
        tests=(
            "tests/test_jobs.py::test_mail_to_the_background_is_accepted_at_once_and_answered_in_reply",
        ),
    ),
    Row(
        "HB-52",
        "bindings link an agent to a channel",
        tests=(
            "tests/test_channels.py::test_a_binding_has_what_it_is_known_by_and_its_token_is_shown_once",
        ),
    ),
    Row(
        "HB-53",
        "a channel's token has one binding",
        tests=("tests/test_channels.py::test_a_token_of_a_channel_has_one_binding",),
    ),
    Row(
        "HB-54",
        "an agent has one binding per kind of channel",
        tests=("tests/test_channels.py::test_an_agent_has_one_binding_of_a_kind",),
    ),
    Row(
        "HB-55",
        "sending to a channel needs a binding",
        tests=("tests/test_channels.py::test_who_is_not_bound_cannot_send_and_who_is_can",),
    ),
    Row(
        "HB-56",
        "a policy says when a session is renewed",
        tests=("tests/test_prompt.py::test_a_session_goes_on_as_long_as_its_policy_lets_it",),
    ),
    Row(
        "HB-57",
        "a run's record has times, messages, result and error",
        tests=("tests/test_runs.py::test_the_record_of_a_run_is_complete",),
    ),
    Row(
        "HB-58",
        "a run has one of four states",
        tests=("tests/test_runs.py::test_the_record_of_a_run_is_complete",),
    ),
    Row(
        "HB-59",
        "a failed or cancelled run has an error",
        tests=("tests/test_runs.py::test_whoever_is_above_ends_a_run_and_nobody_else",),
    ),
    Row(
        "HB-60",
        "a user can cancel a run",
        tests=(
            "tests/test_runs.py::test_whoever_is_above_ends_a_run_and_nobody_else",
            "tests/test_worker.py::test_a_cancelled_run_ends_with_all_that_it_started",
        ),
    ),
    Row(
        "HB-61",
        "a cancelled run is final",
        tests=(
            "tests/test_runs.py::test_whoever_is_above_ends_a_run_and_nobody_else",
            "tests/test_waking.py::test_the_sweep_leaves_alone_whom_somebody_stopped",
        ),
    ),
    Row(
        "HB-62",
        "runs can be listed, newest first",
        tests=("tests/test_runs.py::test_the_record_of_a_run_is_complete",),
    ),
    Row(
        "BX-01",
        "no grant exceeds its source, and none outlives it",
        tests=(
            "tests/test_authority.py::test_a_grant_is_revoked_by_its_granter_or_given_up_by_its_holder_alone",
            "tests/test_authority.py::test_whatever_is_passed_on_is_inside_of_what_is_held",
            "tests/test_authority.py::test_what_is_passed_down_a_chain_is_inside_of_everything_above",
            "tests/test_authority.py::test_what_cannot_be_given_any_more_is_excessive",
            "tests/test_authority_histories.py::test_every_history_keeps_each_grant_within_its_source",
            "tests/test_capabilities.py::test_what_is_revoked_takes_everything_along_that_was_passed_on_from_it",
            "tests/test_capabilities.py::test_a_grant_ends_with_its_outcome_at_every_level_below",
            "tests/test_capabilities.py::test_nothing_can_be_given_for_an_outcome_that_is_finished",
            "tests/test_capabilities.py::test_what_the_board_takes_from_an_agent_goes_from_everybody_it_gave_it_to",
            "tests/test_capabilities.py::test_an_agent_cannot_lift_what_the_board_put_on_it",
            "tests/test_capabilities.py::test_a_right_that_needs_approval_is_passed_on_as_such",
            "tests/test_capabilities.py::test_a_holder_gives_up_a_right_with_all_that_rests_on_it",
            "tests/test_knowledge_base.py::test_a_call_under_way_when_its_grant_ends_happened_before_or_is_refused",
            "tests/test_reorganise.py::test_an_undo_gives_nothing_back_that_could_not_be_given_now",
            "tests/test_hiring.py::test_grants_are_weighed_when_asked_for_and_given_when_approved",
        ),
    ),
    Row(
        "BX-02",
        "the decision function is checked over every small company",
        tests=(
            "tests/test_authority.py::test_every_decision_about_a_file_follows_the_rules",
            "tests/test_authority.py::test_a_broken_decision_function_would_be_caught",
            "tests/test_authority.py::test_a_file_that_is_never_concealed_would_be_caught",
            "tests/test_authority.py::test_every_decision_for_a_person_follows_the_rules_in_every_tree",
            "tests/test_authority.py::test_an_agent_grants_only_to_direct_reports_in_every_tree",
            "tests/test_authority.py::test_what_is_not_for_agents_is_refused_to_every_agent",
            "tests/test_authority.py::test_a_grant_is_revoked_by_its_granter_or_given_up_by_its_holder_alone",
            "tests/test_authority.py::test_whatever_is_passed_on_is_inside_of_what_is_held",
            "tests/test_authority.py::test_what_is_passed_down_a_chain_is_inside_of_everything_above",
            "tests/test_authority.py::test_what_cannot_be_given_any_more_is_excessive",
            "tests/test_authority.py::test_more_rights_never_mean_less_and_more_prohibitions_never_mean_more",
            "tests/test_authority_outcomes.py::test_every_decision_about_an_outcome_follows_the_rules",
            "tests/test_authority_outcomes.py::test_people_follow_their_role_and_their_part",
            "tests/test_organisation_histories.py::test_every_history_keeps_the_organisation_as_the_rules_say",
        ),
    ),
    Row(
        "BX-03",
        "every decision says why, back to a person",
        tests=(
            "tests/test_authority.py::test_every_decision_has_a_reason_a_sentence_and_a_basis",
            "tests/test_command_path.py::test_a_refusal_is_recorded_with_reason_sentence_and_basis",
            "tests/test_command_path.py::test_what_is_hidden_from_somebody_is_recorded_all_the_same",
            "tests/test_events.py::test_every_event_follows_the_one_before",
            "tests/test_events.py::test_what_an_agent_does_by_itself_leads_to_whoever_made_the_agent",
            "tests/test_events.py::test_why_explains_a_refusal_too",
            "tests/test_events.py::test_why_holds_after_the_grants_are_gone",
            "tests/test_events.py::test_why_walks_from_a_write_over_two_levels_of_grants_to_the_person",
            "tests/test_web_events.py::test_a_page_leads_from_an_effect_back_to_the_person_who_authorised_it",
        ),
    ),
    Row(
        "BX-04",
        "the past can be asked: rights, tree and files",
        tests=(
            "tests/test_history.py::test_who_reported_to_whom_at_any_time",
            "tests/test_history.py::test_who_held_what_at_any_time",
            "tests/test_history.py::test_an_undone_reorganisation_does_not_rewrite_who_held_what",
            "tests/test_history.py::test_what_a_file_said_at_any_time",
            "tests/test_history.py::test_a_moment_belongs_to_what_happened_at_it",
            "tests/test_history.py::test_the_past_is_for_the_board_and_has_happened",
            "tests/test_history.py::test_the_history_of_an_outcome_outlives_its_agents",
        ),
    ),
    Row(
        "BX-05",
        "a repeated call has one effect and one answer",
        tests=(
            "tests/test_crash_matrix.py::test_a_call_that_is_killed_at_any_point_has_happened_once_or_not_at_all",
            "tests/test_crash_matrix.py::test_the_matrix_knows_every_verb_that_changes_something",
            "tests/test_knowledge_base.py::test_a_repeated_create_or_write_has_one_effect_and_the_first_answer",
            "tests/test_command_path.py::test_a_repeated_call_has_one_effect_and_the_first_answer",
            "tests/test_command_path.py::test_a_repeat_gets_the_first_answer_even_if_the_world_has_changed",
            "tests/test_command_path.py::test_one_key_for_two_requests_is_refused_and_does_nothing",
            "tests/test_command_path.py::test_the_same_key_of_different_callers_is_not_the_same_key",
            "tests/test_command_path.py::test_16_repeats_at_once_have_one_effect_and_one_answer",
            "tests/test_linearizability.py::test_what_processes_did_at_once_could_have_been_done_one_after_the_other",
            "tests/test_command_path.py::test_a_refused_call_is_not_remembered_as_an_answer",
            "tests/test_command_path.py::test_a_key_is_1_to_255_printable_characters",
            "tests/test_command_path.py::test_answers_are_kept_for_30_days_and_forgotten_by_remit_alone",
            "tests/test_command_path.py::test_a_process_killed_between_commit_and_reply_has_done_it_once",
            "tests/test_store_crash.py::test_a_killed_writer_loses_nothing_it_acknowledged",
            "tests/test_governance_concurrency.py::test_a_process_killed_anywhere_in_a_decision_has_decided_nothing_or_everything",
        ),
    ),
    Row(
        "BX-06",
        "killing any process loses and repeats nothing",
        tests=(
            "tests/test_crash_matrix.py::test_a_call_that_is_killed_at_any_point_has_happened_once_or_not_at_all",
            "tests/test_crash_matrix.py::test_the_matrix_knows_every_verb_that_changes_something",
            "tests/test_backup.py::test_a_restore_that_is_killed_at_any_step_leaves_no_instance_and_can_be_begun_anew",
            "tests/test_linearizability.py::test_what_processes_did_at_once_could_have_been_done_one_after_the_other",
            "tests/test_runs.py::test_a_silent_worker_loses_its_run_and_its_late_calls_are_refused",
            "tests/test_runtime_crash.py::test_a_stopped_worker_that_goes_on_has_lost_its_run",
            "tests/test_runtime_crash.py::test_several_workers_share_a_database_while_some_of_them_are_killed",
            "tests/test_runtime_crash.py::test_whatever_a_stopped_worker_does_when_it_goes_on_is_refused",
            "tests/test_runtime_crash.py::test_when_the_instance_is_killed_its_programs_end_at_once_or_at_the_next_start",
            "tests/test_runtime_kills.py::test_an_instance_and_its_agents_are_killed_at_random_moments",
            "tests/test_runtime_kills.py::test_an_instance_is_killed_around_each_commit_of_a_run",
            "tests/test_runtime_kills.py::test_workers_and_agents_on_one_database_are_killed_at_random_moments",
            "tests/test_simulation.py::test_a_random_company_holds_through_crashes_repeats_and_clock_jumps",
            "tests/test_upgrades.py::test_an_upgrade_that_is_killed_leaves_the_database_as_it_was_or_finished",
        ),
    ),
    Row(
        "BX-07",
        "a person can take any seat in the tree",
        tests=(
            "tests/test_reorganise.py::test_a_person_takes_a_seat_acts_in_it_and_leaves_it",
            "tests/test_reorganise.py::test_a_program_takes_the_place_of_a_person",
        ),
    ),
    Row(
        "BX-08",
        "the tree is reorganised in one checked, reversible step",
        tests=(
            "tests/test_web_org.py::test_a_layer_is_put_in_and_taken_out_and_an_outdated_undo_is_refused",
            "tests/test_web_org.py::test_a_move_shows_whose_authority_changes_before_it_happens_and_can_be_undone",
            "tests/test_history.py::test_an_undone_reorganisation_does_not_rewrite_who_held_what",
            "tests/test_organisation_histories.py::test_every_history_keeps_the_organisation_as_the_rules_say",
            "tests/test_reorganise.py::test_a_moved_agent_works_for_its_new_boss",
            "tests/test_reorganise.py::test_the_end_of_a_former_boss_does_not_touch_who_moved_away",
            "tests/test_reorganise.py::test_a_layer_comes_between_and_its_reports_stay_as_they_are",
            "tests/test_reorganise.py::test_a_layer_goes_and_leaves_its_work_and_reports_to_its_boss",
            "tests/test_reorganise.py::test_a_root_layer_goes_only_when_nothing_would_be_left_without_an_owner",
            "tests/test_reorganise.py::test_a_dry_run_changes_nothing_and_tells_exactly_what_would",
            "tests/test_reorganise.py::test_an_undo_restores_exactly_who_had_which_say",
            "tests/test_reorganise.py::test_one_bad_operation_undoes_all",
            "tests/test_reorganise.py::test_no_move_makes_a_cycle_also_not_two_at_once",
            "tests/test_reorganise.py::test_an_undo_is_refused_when_something_it_touched_was_changed_since",
            "tests/test_reorganise.py::test_an_undo_needs_an_event_that_reorganised_something",
            "tests/test_reorganise.py::test_an_undo_gives_nothing_back_that_could_not_be_given_now",
            "tests/test_reorganise.py::test_a_board_member_over_a_part_reorganises_that_part_alone",
            "tests/test_reorganise.py::test_reorganising_while_everybody_works_breaks_nothing",
        ),
    ),
    Row(
        "BX-09",
        "budgets are reserved down the tree and enforced",
        tests=(
            "tests/test_budget_histories.py::test_whatever_happens_the_children_never_have_more_than_their_boss",
            "tests/test_budgets.py::test_a_budget_comes_out_of_the_nearest_one_above",
            "tests/test_budgets.py::test_what_is_unspent_returns_when_an_agent_goes",
            "tests/test_budgets.py::test_two_at_once_do_not_get_more_than_there_is",
            "tests/test_budgets.py::test_what_is_set_aside_for_an_outcome_returns_with_it",
            "tests/test_budgets.py::test_who_has_nothing_left_stands_still_until_the_month_is_over",
            "tests/test_budgets.py::test_who_stood_still_goes_on_when_there_is_something_again",
            "tests/test_budgets.py::test_what_a_run_took_is_kept_however_it_ended",
            "tests/test_budget_runs.py::test_a_run_over_its_tokens_is_ended_within_one_turn",
            "tests/test_budget_runs.py::test_claude_gets_no_more_money_than_is_left",
            "tests/test_budget_runs.py::test_what_a_run_took_is_known_after_kill_9",
            "tests/test_budget_interfaces.py::test_a_budget_is_set_handed_over_and_seen_over_http",
            "tests/test_budget_interfaces.py::test_an_agent_sees_what_it_has_left_and_asks_for_more",
            "tests/test_budget_interfaces.py::test_budgets_are_set_and_seen_on_the_command_line",
        ),
    ),
    Row(
        "BX-10",
        "an approval is bound to its content and used once",
        tests=(
            "tests/test_approvals.py::test_a_decision_names_the_revision_that_was_seen",
            "tests/test_approvals.py::test_it_is_routed_to_the_first_above_who_may_decide",
            "tests/test_approvals.py::test_nobody_decides_their_own_request_or_one_from_elsewhere",
            "tests/test_approvals.py::test_who_asked_is_woken_with_what_was_decided_and_why",
        ),
    ),
    Row(
        "BX-11",
        "somebody else verifies completion, with evidence",
        tests=(
            "tests/test_authority_outcomes.py::test_every_decision_about_an_outcome_follows_the_rules",
            "tests/test_outcomes.py::test_a_verdict_records_who_judged_and_on_what_evidence",
            "tests/test_outcomes.py::test_nobody_completes_their_own_mandate",
        ),
    ),
    Row("BX-12", "two instances work as one tree and can part", deferred=FEDERATION),
    Row(
        "BX-13",
        "a company can be simulated, with crashes, in seconds",
        tests=(
            "tests/test_real_agents.py::test_one_scenario_file_is_played_by_scripts_and_by_real_agents",
            "tests/test_simulation.py::test_a_random_company_holds_through_crashes_repeats_and_clock_jumps",
            "tests/test_simulation.py::test_the_examples_play_as_they_say",
            "tests/test_simulation.py::test_time_is_nothing_and_crashes_at_every_commit_lose_nothing",
        ),
    ),
    Row(
        "BX-14",
        "identity comes from the token of the run alone",
        tests=(
            "tests/test_knowledge_base.py::test_an_agent_that_was_terminated_reads_nothing_any_more",
            "tests/test_identity.py::test_what_is_not_exactly_a_token_opens_nothing",
            "tests/test_identity.py::test_no_verb_takes_an_argument_that_says_who_is_calling",
            "tests/test_identity.py::test_every_event_carries_the_identity_of_the_token",
            "tests/test_identity.py::test_the_widest_rights_do_not_make_an_agent_somebody_else",
            "tests/test_identity.py::test_an_agent_cannot_act_for_another_by_naming_it",
            "tests/test_identity.py::test_a_run_cannot_end_or_start_runs",
            "tests/test_command_path.py::test_the_same_key_of_different_callers_is_not_the_same_key",
            "tests/test_companies.py::test_what_belongs_to_another_company_does_not_exist_for_its_neighbours",
            "tests/test_mail.py::test_the_sender_is_whoever_the_token_says",
            "tests/test_mail.py::test_the_database_itself_keeps_an_agents_message_from_being_the_boards",
            "tests/test_turn.py::test_no_body_subject_or_name_can_pass_for_a_header",
            "tests/test_turn.py::test_only_what_a_person_sent_is_from_the_board",
        ),
    ),
    Row(
        "BX-15",
        "an idle company runs nothing",
        tests=(
            "tests/test_waking.py::test_nobody_is_started_who_cannot_be",
            "tests/test_waking.py::test_who_was_woken_for_nothing_is_let_sleep",
            "tests/test_waking.py::test_with_nothing_to_do_nothing_is_started",
        ),
    ),
    Row(
        "BX-16",
        "runs that change nothing slow down and stop",
        tests=(
            "tests/test_runs.py::test_runs_that_change_nothing_slow_down_and_stop_the_agent",
            "tests/test_runs.py::test_a_run_that_changed_something_or_dealt_with_mail_is_no_idle_one",
            "tests/test_waking.py::test_new_mail_ends_the_pause_after_idleness_but_not_after_failures",
        ),
    ),
    Row(
        "BX-17",
        "one command says why an agent is not running",
        tests=(
            "tests/test_runs.py::test_why_an_agent_does_not_run_has_one_reason_each",
            "tests/test_web_agent.py::test_an_agent_says_who_it_is_what_it_works_on_and_why_it_does_not_run",
        ),
    ),
    Row(
        "BX-18",
        "one list shows all that awaits a person",
        tests=(
            "tests/test_waiting.py::test_everything_that_awaits_a_person_is_in_one_list_oldest_first",
            "tests/test_waiting.py::test_each_person_sees_their_part",
            "tests/test_waiting.py::test_the_list_covers_all_companies_of_a_person",
        ),
    ),
    Row(
        "BX-19",
        "unused capabilities can be seen and revoked",
        tests=(
            "tests/test_capabilities.py::test_a_grant_that_was_never_used_is_reported_until_it_is_used",
            "tests/test_capabilities.py::test_unused_grants_can_be_revoked_as_they_are_reported",
            "tests/test_capabilities.py::test_a_refused_use_is_not_a_use",
        ),
    ),
    Row(
        "BX-20",
        "a company exports to text and imports again",
        tests=(
            "tests/test_archive.py::test_an_export_is_text_that_says_everything",
            "tests/test_archive.py::test_no_secret_leaves_with_an_export",
            "tests/test_archive.py::test_a_company_survives_the_way_there_and_back",
            "tests/test_archive.py::test_a_damaged_export_is_refused_with_path_and_reason",
            "tests/test_archive.py::test_a_hostile_archive_is_refused_on_both_sides",
            "tests/test_archive.py::test_a_folder_is_made_by_one_command_and_read_by_another",
        ),
    ),
)
