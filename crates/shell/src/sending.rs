//! Requests that carry data out of the machine: the content of a file, a variable or a command in an address, in a
//! name that is looked up, or in a header.

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
    "avahi-resolve",
    "avahi-resolve-host-name",
    "ssh-keyscan",
    "finger",
    "ntpdate",
    "sntp",
    "snmpget",
    "snmpwalk",
    "snmpset",
    "ldapsearch",
    "ab",
    "hey",
    "wrk",
    "siege",
    "mosquitto_pub",
    "kafkacat",
    "kcat",
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
    ("wget", "--load-cookies"),
    ("wget2", "--load-cookies"),
    ("ab", "-p|-u"),
    ("mosquitto_pub", "-f|--file"),
    ("hping3", "-E|--file"),
];

/// Programs that send what they read from their input.
const SENDS_INPUT: &[&str] = &[
    "openssl",
    "http",
    "https",
    "xh",
    "xhs",
    "websocat",
    "wscat",
    "telnet",
    "kafkacat",
    "kcat",
    "mosquitto_pub",
];

/// Database clients: what they are asked goes to a host that they are given.
const DATABASES: &[&str] =
    &["psql", "mysql", "mariadb", "redis-cli", "mongosh", "clickhouse-client"];

/// What a call sends, or whom it asks; `None` where it does neither.
pub(super) fn judge(input: &Input, call: &Invocation) -> Option<Assessment> {
    // `gh api` asks what it is given.
    let api = matches!(call.program, "gh" | "glab") && call.word(0) == Some("api");
    let asks = api || ASKS.contains(&call.program);
    if DATABASES.contains(&call.program) {
        return to_database(call);
    }
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
    let mut judged = judge_unknown(call, asks);
    let telnet = call.operands.iter().any(|arg| arg.text.starts_with("telnet://"));
    if (SENDS_INPUT.contains(&call.program) || telnet) && *input != Input::Inherited {
        judged = Some(Assessment::of(Class::Publish, "sends its input to another machine"));
    }
    for word in addresses(call, asks) {
        if let Some(found) = address::judge(&word) {
            judged = Some(judged.map_or(found.clone(), |old| classify::worse(old, found)));
        }
    }
    judged
}

/// What is only known when it runs, as a part of what another machine's database is asked.
fn to_database(call: &Invocation) -> Option<Assessment> {
    let elsewhere = call.args.iter().any(|arg| {
        let text = &*arg.text;
        let host = text.strip_prefix("--host=").or(text.split_once("host=").map(|(_, rest)| rest));
        let local = |text: &str| text.contains("localhost") || text.contains("127.0.0.1");
        text == "-h"
            || text.contains("://") && !local(text)
            || host.is_some_and(|host| !local(host))
    });
    let local =
        call.values("-h|--host").any(|host| matches!(host, "localhost" | "127.0.0.1" | "::1"));
    let computed = call.args.iter().any(|arg| arg.text.contains(UNKNOWN));
    (elsewhere && !local && computed).then(|| {
        Assessment::of(
            Class::Publish,
            "sends the content of a file, a variable or a command elsewhere",
        )
    })
}

/// What is only known when it runs, as a part of what is asked.
fn judge_unknown(call: &Invocation, asks: bool) -> Option<Assessment> {
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
    // A search, and the machine that an image is pulled from, are asked for by name.
    let searched =
        call.word(0) == Some("search") && call.operands.iter().any(|arg| is_unknown(&arg.text));
    let host = |arg: &&Arg| arg.text.starts_with(UNKNOWN) && arg.text[1..].starts_with('.');
    let pulled = call.word(0) == Some("pull") && call.operands.iter().any(host);
    if call.operands.iter().any(in_address) || in_option || searched || pulled {
        let reason = "sends the content of a file, a variable or a command as a part of a request";
        return Some(Assessment::of(Class::Publish, reason));
    }
    let from_file = match call.program {
        "curl" => call
            .values("-d|--data|--data-binary|--data-ascii|--data-urlencode|--json|-H|--header|-F|--form|--url-query")
            .any(|value| value.starts_with('@') || value.contains("=@") || urlencoded_file(value))
            // Cookies without an equals sign are a file of them.
            || call.values("-b|--cookie").any(|value| !value.contains('=') && !value.is_empty()),
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
