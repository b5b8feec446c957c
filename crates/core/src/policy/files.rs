//! Files that ask for more care than others, whichever tool uses them: those that hold secrets, and those that
//! change what an agent may do. The one list of each; commands and file tools ask here.

use super::pattern::glob;

/// Directories whose files are secrets, and files that are known by the directory they are in, wherever they are.
const SECRET_DIRECTORIES: &[&str] = &[
    ".ssh",
    ".aws",
    ".azure",
    ".gnupg",
    ".password-store",
    ".config/gcloud",
    ".config/gh",
    ".kube/config",
    ".docker/config.json",
    ".local/share/keyrings",
    ".cargo/credentials",
    ".cargo/credentials.toml",
];

/// Names of files that hold a private key or credentials, wherever they are.
const SECRET_NAMES: &[&str] = &[
    "id_rsa",
    "id_ed25519",
    "id_ecdsa",
    "id_dsa",
    "*_rsa",
    "*_ed25519",
    ".git-credentials",
    ".netrc",
    "_netrc",
    ".pgpass",
    ".my.cnf",
    ".pypirc",
    "*.key",
    "*key.pem",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.ppk",
    "*.kdbx",
];

/// Files whose content says what an agent may do, as globs on the path inside the workspace.
const RULE_FILES: &[&str] = &[
    ".windlass/*",
    ".mcp.json",
    ".claude/*",
    ".agents/*",
    "AGENTS.md",
    "CLAUDE.md",
    "AGENTS.override.md",
    "CLAUDE.local.md",
];

/// What a task keeps for itself in `.windlass`; changing it changes no rules.
const OWN_FILES: &str = ".windlass/tasks/*";

/// Whether a path names a file or directory that holds secrets, wherever it lies. The path may hold globs.
pub fn is_secret(path: &str) -> bool {
    let parts: Vec<&str> =
        path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let name = parts.last().copied().unwrap_or_default();
    // What others are meant to have, or to copy.
    let public = [".pub", ".example", ".sample", ".template", ".md"];
    if public.iter().any(|ending| name.ends_with(ending)) || name == "known_hosts" {
        return false;
    }
    let named = |pattern: &str, part: &str| {
        glob(pattern, &part.to_ascii_lowercase()) || (has_glob(part) && glob(part, pattern))
    };
    // `.key` is more often a filter of `jq` than the name of a file.
    let nameless = name.starts_with('.');
    let applies = |pattern: &&&str| !(nameless && pattern.starts_with('*'));
    if SECRET_NAMES.iter().filter(applies).any(|pattern| named(pattern, name)) {
        return true;
    }
    SECRET_DIRECTORIES.iter().any(|directory| {
        let wanted: Vec<&str> = directory.split('/').collect();
        parts
            .windows(wanted.len())
            .any(|found| found.iter().zip(&wanted).all(|(part, wanted)| named(wanted, part)))
    })
}

/// A part that is a glob but does not stand for just any name.
fn has_glob(part: &str) -> bool {
    part.contains(['*', '?', '[']) && part.chars().any(char::is_alphanumeric)
}

/// Whether writing this file changes an agent's own rules. The path is the one inside the workspace.
pub fn changes_rules(path: &str) -> bool {
    let path = path.trim_start_matches("./");
    let matches = |pattern: &&&str| {
        // Case counts for less here than the file system says: some have none.
        let (pattern, path) = (pattern.to_ascii_lowercase(), path.to_ascii_lowercase());
        glob(&pattern, &path) || glob(&format!("*/{pattern}"), &path)
    };
    !glob(OWN_FILES, path) && RULE_FILES.iter().any(|pattern| matches(&pattern))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_found_at_any_depth_and_public_files_are_not() {
        for path in [
            ".ssh/id_rsa",
            "home/.ssh/config",
            "/workspace/.ssh",
            ".aws/credentials",
            ".gnupg/secring.gpg",
            ".netrc",
            "deploy/server.key",
            "certs/private-key.pem",
            "id_ed25519",
            ".ss*/id_*",
            ".SSH/id_rsa",
            ".config/gh/hosts.yml",
        ] {
            assert!(is_secret(path), "{path}");
        }
        for path in [
            ".ssh/id_rsa.pub",
            ".ssh/known_hosts",
            "src/key.rs",
            "keys.md",
            "certs/ca.pem",
            "src/*",
            "*.rs",
            "*",
            "README.md",
            ".env.example",
        ] {
            assert!(!is_secret(path), "{path}");
        }
    }

    #[test]
    fn rule_files_are_found_and_a_tasks_own_files_are_not() {
        for path in [
            ".windlass/config.toml",
            ".windlass/skills/x/SKILL.md",
            ".mcp.json",
            "sub/AGENTS.md",
            "CLAUDE.md",
            ".claude/settings.json",
            ".agents/skills/x/SKILL.md",
            "./agents.md",
        ] {
            assert!(changes_rules(path), "{path}");
        }
        for path in [".windlass/tasks/task_1/plan.md", "src/agents.rs", "docs/claude.txt", "a.json"]
        {
            assert!(!changes_rules(path), "{path}");
        }
    }
}
