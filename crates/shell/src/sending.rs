//! Requests that carry something out: the content of a file, a variable or a command in an address, a name that
//! is looked up, or a header.

use super::invocation::Invocation;
use super::state::{Arg, Input, UNKNOWN};
use super::{address, classify};
use windlass_core::policy::class::{Assessment, Class};

/// Programs whose words become a request: an address, a name, a header.
const ASKS: &[&str] = &[
    "curl",
    "wget",
    "wget2",
    "aria2c",
    "axel",
    "http",
    "https",
    "xh",
    "xhs",
    "curlie",
    "yt-dlp",
    "youtube-dl",
    "ping",
    "ping6",
    "fping",
    "nping",
    "hping3",
    "arping",
    "dig",
    "drill",
    "kdig",
    "delv",
    "nslookup",
    "host",
    "whois",
    "traceroute",
    "tracepath",
    "mtr",
    "nmap",
    "w3m",
    "lynx",
    "links",
    "elinks",
    "nc",
    "ncat",
    "netcat",
    "socat",
    "telnet",
    "grpcurl",
    "websocat",
    "wscat",
    "resolvectl",
    "systemd-resolve",
    "ftp",
    "tftp",
    "lftp",
    "getent",
    "openssl",
];

/// Programs that fetch from addresses they are given, and do more besides.
const FETCHES: &[&str] = &[
    "git",
    "hub",
    "npm",
    "pnpm",
    "yarn",
    "bun",
    "bunx",
    "npx",
    "deno",
    "pip",
    "pip3",
    "pipx",
    "uv",
    "uvx",
    "poetry",
    "cargo",
    "go",
    "gem",
    "bundle",
    "composer",
    "apt",
    "apt-get",
    "brew",
    "dnf",
    "apk",
    "docker",
    "podman",
    "skopeo",
    "helm",
    "nix",
    "conda",
    "mamba",
    "svn",
    "hg",
    "gh",
    "glab",
    "kubectl",
    "aws",
    "gcloud",
    "terraform",
    "xdg-open",
    "open",
    "wslview",
    "sensible-browser",
    "firefox",
    "chromium",
    "google-chrome",
];

/// Options whose value stays here.
const STAYS_HERE: &str = "-o|--output|-O|--output-document|--output-dir|-P|--directory-prefix|-D|\
    --dump-header|-c|--cookie-jar|--cacert|--cert|--key|-m|--max-time|--connect-timeout|--retry|-w|\
    --write-out|--trace|--trace-ascii|--stderr|--etag-save|-a|--append-output|-d|--dir|-W|-i|-t|--timeout";

/// Options whose value is a file with names, addresses or text to send.
const SENDS_FILE: &[(&str, &str)] = &[
    ("wget", "-i|--input-file"),
    ("wget2", "-i|--input-file"),
    ("aria2c", "-i|--input-file"),
    ("nmap", "-iL"),
    ("fping", "-f|--file"),
    ("http", "--raw"),
];

/// What a call sends, or whom it asks; `None` where it does neither.
pub(super) fn judge(input: &Input, call: &Invocation) -> Option<Assessment> {
    // `gh api` asks what it is given.
    let api = matches!(call.program, "gh" | "glab") && call.word(0) == Some("api");
    let asks = api || ASKS.contains(&call.program);
    if !asks && !FETCHES.contains(&call.program) {
        return None;
    }
    let looks_up = match call.program {
        "getent" => matches!(call.word(0), Some("hosts" | "ahosts" | "ahostsv4" | "ahostsv6")),
        "openssl" => call.word(0) == Some("s_client"),
        _ => true,
    };
    if !looks_up {
        return None;
    }
    let mut judged = carried(call, asks);
    if call.program == "openssl" && *input != Input::Inherited {
        judged = Some(Assessment::of(Class::Publish, "sends its input to another machine"));
    }
    for word in addresses(call, asks) {
        if let Some(found) = address::judge(&word) {
            judged = Some(judged.map_or(found.clone(), |old| classify::worse(old, found)));
        }
    }
    judged
}

/// What is only known when it runs, as a part of what is asked.
fn carried(call: &Invocation, asks: bool) -> Option<Assessment> {
    let is_unknown = |text: &str| text.contains(UNKNOWN);
    let in_address = |arg: &&Arg| match arg.text.split_once("://") {
        Some((_, rest)) => is_unknown(rest),
        None => asks && is_unknown(&arg.text),
    };
    let stays = |name: &str| STAYS_HERE.split('|').any(|known| known == name);
    let in_option = call.options.iter().any(|option| {
        option.value.is_some_and(|value| {
            is_unknown(value) && if asks { !stays(&option.name) } else { value.contains("://") }
        })
    });
    if call.operands.iter().any(in_address) || in_option {
        let reason = "sends the content of a file, a variable or a command as a part of a request";
        return Some(Assessment::of(Class::Publish, reason));
    }
    let from_file = match call.program {
        "curl" => call
            .values("-d|--data|--data-binary|--data-ascii|--data-urlencode|--json|-H|--header|-F|--form|--url-query")
            .any(|value| value.starts_with('@') || value.contains("=@") || urlencoded_file(value)),
        "dig" => call.args.windows(2).any(|pair| pair[0].text == "-f"),
        program => SENDS_FILE
            .iter()
            .any(|(name, options)| *name == program && call.values(options).any(|file| file != "-")),
    };
    from_file.then(|| Assessment::of(Class::Publish, "sends the content of a file"))
}

/// `name@file` of `--data-urlencode`; an address of mail has a dot after its at sign and no slash before.
fn urlencoded_file(value: &str) -> bool {
    value.split_once('@').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    })
}

/// The words that may be addresses.
fn addresses(call: &Invocation, asks: bool) -> Vec<String> {
    let named = |text: &str| asks || text.contains("://");
    let operands = call.operands.iter().map(|arg| arg.text.clone()).filter(|text| named(text));
    let options = call.options.iter().filter_map(|option| option.value);
    let in_options = options.flat_map(|value| {
        // `--resolve host:443:10.0.0.1` and `--connect-to` have several parts; a proxy is one.
        let dotted = |text: &&str| text.matches('.').count() == 3 || text.contains("://");
        let parts = std::iter::once(value).chain(value.split(':'));
        parts.filter(dotted).map(str::to_owned).collect::<Vec<_>>()
    });
    operands.chain(in_options).collect()
}
