//! How to get a program that is not there.

/// What to do about a runner whose program is missing.
pub fn how_to_install(program: &str) -> String {
    if program.contains('/') && !program.starts_with('/') {
        return format!(
            "`{program}` is not in the worktree: only what is committed is there, and the ignored files that \
             `.worktreeinclude` names"
        );
    }
    let name = program.rsplit('/').next().unwrap_or(program);
    let how = match name {
        "claude" => "install it with `npm install -g @anthropic-ai/claude-code`".to_owned(),
        "codex" => "install it with `npm install -g @openai/codex`".to_owned(),
        "script" => "install `bsdutils` (Debian) or `util-linux`, which has it".to_owned(),
        name => format!("install `{name}`"),
    };
    format!(
        "the program `{program}` is not in the sandbox: {how}, or name its path as `program` in \
         `[runners.programs.NAME]` of your configuration file; a program in your home directory is \
         shown by `sandbox.read_only`"
    )
}
