//! Which variables of windlass's environment commands get. In a sandbox that is an allowlist, because a secret can
//! have any name; on the host it is everything but windlass's own keys.

/// Names that pass as they are: locale, where tools live, which certificates to trust.
const NAMES: &[&str] = &[
    "PATH",
    "LANG",
    "LANGUAGE",
    "TZ",
    "USER",
    "LOGNAME",
    "SHELL",
    "COLORTERM",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "GOPATH",
    "GOROOT",
    "JAVA_HOME",
    "PYENV_ROOT",
    "NVM_DIR",
    "NVM_BIN",
    "VOLTA_HOME",
    "DENO_DIR",
    "BUN_INSTALL",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "GIT_SSL_CAINFO",
    "PIP_CERT",
    "SOURCE_DATE_EPOCH",
];

/// Prefixes of names that pass.
const PREFIXES: &[&str] = &["LC_"];

/// Where programs are found when windlass itself has no `PATH`.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Variables that choose the character set.
const LOCALE_NAMES: [&str; 3] = ["LANG", "LC_ALL", "LC_CTYPE"];

/// The character set when nothing chooses one. Only `LC_CTYPE`: all else of `C.UTF-8` is as in `C`, and setting
/// it would make every program read a dozen files for nothing.
const CHARACTER_SET: &str = "C.UTF-8";

/// What commands may see of windlass's own environment; `names` adds to the list.
pub fn allowed_variables(
    environment: &[(String, String)],
    names: &[String],
) -> Vec<(String, String)> {
    let listed = |name: &str| {
        NAMES.contains(&name)
            || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
            || names.iter().any(|wanted| wanted == name)
    };
    let mut allowed: Vec<(String, String)> =
        environment.iter().filter(|(name, _)| listed(name)).cloned().collect();
    let has_locale = allowed.iter().any(|(name, _)| LOCALE_NAMES.contains(&name.as_str()));
    let mut default = |name: &str, value: &str| {
        if !allowed.iter().any(|(known, _)| known == name) {
            allowed.push((name.to_owned(), value.to_owned()));
        }
    };
    default("PATH", DEFAULT_PATH);
    if !has_locale {
        default("LC_CTYPE", CHARACTER_SET);
    }
    // Nobody sees colours or types a password.
    default("TERM", "dumb");
    default("GIT_TERMINAL_PROMPT", "0");
    default("PAGER", "cat");
    allowed
}

/// Set in windlass's environment where its processes may be looked into, as measurements do.
const DUMPABLE: &str = "WINDLASS_DUMPABLE";

/// Whether the helper's memory may be looked into.
pub(crate) fn is_dumpable(environment: &[(String, String)]) -> bool {
    environment.iter().any(|(name, value)| name == DUMPABLE && !value.is_empty())
}

/// What commands on the host see: everything but windlass's own keys, by whatever name their values go.
pub fn without_keys(environment: &[(String, String)], keys: &[String]) -> Vec<(String, String)> {
    let values: Vec<&str> = environment
        .iter()
        .filter(|(name, value)| keys.contains(name) && !value.is_empty())
        .map(|(_, value)| value.as_str())
        .collect();
    let is_key = |name: &String, value: &str| keys.contains(name) || values.contains(&value);
    let kept: Vec<(String, String)> =
        environment.iter().filter(|(name, value)| !is_key(name, value)).cloned().collect();
    let names: Vec<String> = kept.iter().map(|(name, _)| name.clone()).collect();
    allowed_variables(&kept, &names)
}

/// What a container gets of windlass's own environment: the locale, and what was asked for by name. The image
/// says where things are.
pub(crate) fn for_container(
    environment: &[(String, String)],
    names: &[String],
    image: &[String],
) -> Vec<(String, String)> {
    const LOCALE: [&str; 4] = ["LANG", "LANGUAGE", "TZ", "COLORTERM"];
    let own = environment.iter().filter(|(name, _)| {
        LOCALE.contains(&name.as_str())
            || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
            || names.contains(name)
    });
    let image = image.iter().filter_map(|entry| entry.split_once('='));
    let mut joined: Vec<(String, String)> =
        image.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    for (name, value) in own {
        joined.retain(|(known, _)| known != name);
        joined.push((name.clone(), value.clone()));
    }
    // All of it is wanted; the usual defaults are added.
    let all: Vec<String> = joined.iter().map(|(name, _)| name.clone()).collect();
    allowed_variables(&joined, &all)
}

/// The variables by which programs find the proxy.
pub(crate) fn proxies(port: u16) -> Vec<(String, String)> {
    let mut variables = Vec::new();
    if port == 0 {
        return variables;
    }
    let address = format!("127.0.0.1:{port}");
    for (name, scheme) in
        [("http_proxy", "http"), ("https_proxy", "http"), ("all_proxy", "socks5h")]
    {
        let value = format!("{scheme}://{address}");
        variables.push((name.to_ascii_uppercase(), value.clone()));
        variables.push((name.to_owned(), value));
    }
    for name in ["no_proxy", "NO_PROXY"] {
        variables.push((name.to_owned(), "localhost,127.0.0.1,::1".to_owned()));
    }
    variables
}

/// One environment of several, later ones winning, as programs take it.
pub(crate) fn join(
    base: &[(String, String)],
    sandbox: &[(String, String)],
    command: &[(String, String)],
) -> Vec<String> {
    let mut joined: Vec<(&str, &str)> = Vec::new();
    for (name, value) in base.iter().chain(sandbox).chain(command) {
        joined.retain(|(known, _)| known != name);
        joined.push((name, value));
    }
    joined.into_iter().map(|(name, value)| format!("{name}={value}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listed_names_pass_and_keys_never_do() {
        let own = [
            ("PATH", "/bin"),
            ("OPENAI_API_KEY", "sk"),
            ("LC_ALL", "C"),
            ("GITHUB_TOKEN", "t"),
            ("SSH_AUTH_SOCK", "/run/agent"),
            ("MY_FLAG", "1"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let allowed = allowed_variables(&own, &["MY_FLAG".to_owned()]);
        let names: Vec<&str> = allowed.iter().map(|(name, _)| name.as_str()).collect();
        let expected = ["PATH", "LC_ALL", "MY_FLAG", "TERM", "GIT_TERMINAL_PROMPT", "PAGER"];
        assert_eq!(names, expected);
    }

    #[test]
    fn the_host_keeps_everything_but_our_keys() {
        let own = [
            ("HOME", "/home/u"),
            ("SSH_AUTH_SOCK", "/run/agent"),
            ("GITHUB_TOKEN", "t"),
            ("OPENAI_API_KEY", "sk-1"),
            ("MY_COPY", "sk-1"),
            ("EMPTY", ""),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let kept = without_keys(&own, &["OPENAI_API_KEY".to_owned(), "REDIS_URL".to_owned()]);
        let names: Vec<&str> = kept.iter().map(|(name, _)| name.as_str()).take(4).collect();
        assert_eq!(names, ["HOME", "SSH_AUTH_SOCK", "GITHUB_TOKEN", "EMPTY"]);
        assert!(kept.iter().all(|(_, value)| value != "sk-1"), "{kept:?}");
    }

    #[test]
    fn characters_are_utf_8_unless_something_says_otherwise() {
        let letters = |own: &[(String, String)]| {
            allowed_variables(own, &[])
                .into_iter()
                .find(|(name, _)| name == "LC_CTYPE")
                .map(|(_, value)| value)
        };
        assert_eq!(letters(&[]).as_deref(), Some("C.UTF-8"));
        assert_eq!(letters(&[("LANG".to_owned(), "de_DE.UTF-8".to_owned())]), None);
    }

    #[test]
    fn the_command_wins_over_the_sandbox_and_that_over_the_rest() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let joined = join(
            &[pair("A", "1"), pair("B", "1")],
            &[pair("B", "2"), pair("C", "2")],
            &[pair("C", "3")],
        );
        assert_eq!(joined, ["A=1", "B=2", "C=3"]);
    }
}
