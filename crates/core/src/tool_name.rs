//! The names of the built-in tools, as models call them and journals keep them. Everything that treats one of
//! them specially names it from here.

pub const BASH: &str = "bash";
pub const BASH_OUTPUT: &str = "bash_output";
pub const BASH_KILL: &str = "bash_kill";
pub const READ: &str = "read";
pub const WRITE: &str = "write";
pub const EDIT: &str = "edit";
pub const GLOB: &str = "glob";
pub const GREP: &str = "grep";
pub const UPDATE_PLAN: &str = "update_plan";
pub const SAVE_MEMO: &str = "save_memo";
pub const SEARCH_MEMO: &str = "search_memo";
pub const ASK_USER: &str = "ask_user";
pub const SPAWN_AGENT: &str = "spawn_agent";
pub const LIST_SKILLS: &str = "list_skills";
pub const READ_SKILL: &str = "read_skill";
pub const PUBLISH_DELIVERABLE: &str = "publish_deliverable";
pub const WEB_FETCH: &str = "web_fetch";
pub const WEB_SEARCH: &str = "web_search";
pub const BROWSER: &str = "browser";

pub const COMMIT: &str = "commit";
pub const CLAIM: &str = "claim";
pub const CAPTURE: &str = "capture";
pub const SUBMIT: &str = "submit";
pub const APPROVE: &str = "approve";
pub const REJECT: &str = "reject";

/// The tools for commitments, in the order of a commitment's life.
pub const LEDGER: [&str; 6] = [COMMIT, CLAIM, CAPTURE, SUBMIT, APPROVE, REJECT];

/// Every built-in tool.
pub const ALL: [&str; 25] = [
    BASH,
    BASH_OUTPUT,
    BASH_KILL,
    READ,
    WRITE,
    EDIT,
    GLOB,
    GREP,
    UPDATE_PLAN,
    SAVE_MEMO,
    SEARCH_MEMO,
    ASK_USER,
    SPAWN_AGENT,
    LIST_SKILLS,
    READ_SKILL,
    PUBLISH_DELIVERABLE,
    WEB_FETCH,
    WEB_SEARCH,
    BROWSER,
    COMMIT,
    CLAIM,
    CAPTURE,
    SUBMIT,
    APPROVE,
    REJECT,
];
