//! Interpreters of other languages: code given on the command line, scripts, modules.
//!
//! Inline code is not parsed. It is a local command when a scan finds nothing in it that could run,
//! write, delete or connect; otherwise it is opaque, and texts in it are read as if a shell got them.

use super::classify::{is_unknown, opaque, worse};
use super::invocation::{Invocation, Style};
use super::paths::{Resolver, Use};
use super::state::{Arg, Input};
use super::walk::Walk;
use super::{Via, shell, table};
use windlass_core::policy::class::{Assessment, Class};

struct Interpreter {
    names: &'static [&'static str],
    /// Options whose value is code.
    code: &'static str,
    /// Other options with a value.
    values: &'static str,
}

const INTERPRETERS: &[Interpreter] = &[
    Interpreter { names: &["python", "pypy", "ipython"], code: "-c", values: "-c -m -W -X" },
    Interpreter {
        names: &["node", "nodejs", "tsx", "ts-node"],
        code: "-e|--eval|-p|--print",
        values: "-e --eval -p --print -r --require --import --loader",
    },
    Interpreter { names: &["perl"], code: "-e|-E", values: "-e -E -I -M -m -x" },
    Interpreter { names: &["ruby", "jruby"], code: "-e", values: "-e -I -r -C" },
    Interpreter { names: &["php"], code: "-r|-B|-R|-E", values: "-r -B -R -E -d -c -S -t" },
    Interpreter { names: &["lua", "luajit", "lua5.4"], code: "-e", values: "-e -l" },
    Interpreter { names: &["rscript", "Rscript", "R"], code: "-e", values: "-e" },
    Interpreter {
        names: &[
            "osascript",
            "tclsh",
            "expect",
            "guile",
            "elixir",
            "julia",
            "scala",
            "groovy",
            "ghc",
            "runghc",
            "ghci",
            "irb",
            "jshell",
            "octave",
            "iex",
            "sbcl",
            "racket",
            "ocaml",
            "clojure",
        ],
        code: "-e|-c|--eval",
        values: "-e -c --eval",
    },
];

/// Words in code that run other programs: texts around them are commands.
const RUNS: &[&str] = &[
    "system",
    "exec",
    "popen",
    "spawn",
    "subprocess",
    "child_process",
    "shell_exec",
    "passthru",
    "qx",
    "`",
    "%x",
    "proc_open",
    "os.run",
    "check_call",
    "check_output",
    "Open3",
    "Kernel",
    "pcntl",
    "syscall",
    "execve",
    "do shell script",
    "Command::new",
    "ProcessBuilder",
];

/// Words in code that write, delete, connect or hide what happens.
const SUSPICIOUS: &[&str] = &[
    "open(",
    "open ",
    "write",
    "unlink",
    "remove",
    "rmtree",
    "rmdir",
    "rmSync",
    "rm(",
    "rename",
    "chmod",
    "chown",
    "kill",
    "fork",
    "eval",
    "compile",
    "__import__",
    "importlib",
    "getattr",
    "globals",
    "builtins",
    "ctypes",
    "pickle",
    "marshal",
    "socket",
    "urllib",
    "request",
    "http",
    "fetch",
    "ftplib",
    "smtplib",
    "telnet",
    "paramiko",
    "pty",
    "shutil",
    "pathlib",
    "Path(",
    "import os",
    "import(",
    "from os",
    "os.",
    "fs.",
    "'fs'",
    "\"fs\"",
    "node:",
    "net.",
    "'net'",
    "dgram",
    "process.binding",
    "process.kill",
    "File.",
    "FileUtils",
    "Dir.",
    "IO.",
    "require 'net",
    "LWP",
    "file_put",
    "fopen",
    "copy(",
    "move(",
    "base64",
    "b64decode",
    "decode",
    "atob",
    "Buffer.from",
    "fromCharCode",
    "chr(",
    "\\x",
    "\\u00",
    "signal",
    "runpy",
    "asyncio",
    "multiprocessing",
    "environ",
    "process.env",
    "ENV[",
    "getenv",
    "send(",
    "instance_eval",
    "const_get",
    "truncate",
    "symlink",
    "mkfifo",
    "setuid",
];

/// Modules that come with their language and only compute.
const OWN_MODULES: &[&str] = &[
    "sys",
    "json",
    "math",
    "cmath",
    "re",
    "datetime",
    "time",
    "random",
    "itertools",
    "functools",
    "collections",
    "string",
    "textwrap",
    "statistics",
    "decimal",
    "fractions",
    "hashlib",
    "hmac",
    "uuid",
    "calendar",
    "pprint",
    "operator",
    "typing",
    "enum",
    "dataclasses",
    "abc",
    "struct",
    "unicodedata",
    "platform",
    "locale",
    "zlib",
    "binascii",
    "bisect",
    "heapq",
    "copy",
    "csv",
    "io",
    "inspect",
    "ast",
    "keyword",
    "secrets",
    "difflib",
    "html",
    "ipaddress",
    "zoneinfo",
    "tomllib",
    "__future__",
    "util",
    "path",
    "crypto",
    "assert",
    "url",
    "querystring",
    "buffer",
    "events",
    "os",
    "date",
    "set",
    "bigdecimal",
    "digest",
    "yaml",
];

/// Longer code is nothing anyone sees through.
const LONGEST_CODE: usize = 4_000;

/// Whether a program is an interpreter that is known here.
pub(super) fn is_interpreter(program: &str) -> bool {
    find(program).is_some()
}

fn find(program: &str) -> Option<&'static Interpreter> {
    let base = base(program);
    INTERPRETERS.iter().find(|known| {
        known.names.contains(&program) || (!base.is_empty() && known.names.contains(&base))
    })
}

/// The name without a version: `python3.12` is `python`.
fn base(program: &str) -> &str {
    program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')
}

/// Judges an interpreter; `None` when `program` is not one.
pub(super) fn interpreter(walk: &mut Walk<'_>, program: &str, args: &[Arg]) -> Option<Assessment> {
    if matches!(program, "awk" | "gawk" | "mawk" | "nawk" | "original-awk") {
        return Some(awk(walk, program, args));
    }
    let known = find(program)?;
    let base = base(program);
    let invocation = Invocation::new(program, args, known.values, Style::Bundled);
    for loaded in
        invocation.values("-r|--require|--import|--loader").map(str::to_owned).collect::<Vec<_>>()
    {
        if loaded.starts_with(['/', '.']) {
            let ran = shell::script_file(walk, &Arg::literal(loaded.clone()), base);
            walk.findings.note(ran, &[Arg::literal(loaded)]);
        }
    }
    let codes: Vec<String> = invocation.values(known.code).map(str::to_owned).collect();
    if !codes.is_empty() {
        let mut judged = Assessment::of(Class::LocalCommand, "runs code that only computes");
        if base == "perl" && invocation.has("-I|-M|-m") || base == "ruby" && invocation.has("-r|-I")
        {
            judged = worse(judged, imported());
        }
        for code in codes {
            judged = worse(judged, judge(walk, program, &code));
        }
        if matches!(base, "perl" | "ruby") && invocation.has("-i") {
            judged = worse(judged, judge_edits(&walk.paths(), &invocation.operands));
        }
        return Some(judged);
    }
    if base == "python"
        && let Some(module) = invocation.values("-m").next()
    {
        let at = args.iter().position(|arg| arg.text == module).unwrap_or(args.len() - 1);
        return Some(python_module(walk, program, module, &args[at + 1..]));
    }
    if base == "node" && invocation.has("--test") {
        return Some(Assessment::of(Class::Test, "runs tests"));
    }
    Some(match invocation.operands.first() {
        Some(file) if file.text != "-" => shell::script_file(walk, file, program),
        _ if !invocation.options.is_empty()
            && invocation.operands.is_empty()
            && walk.state.input == Input::Inherited =>
        {
            Assessment::of(Class::LocalCommand, format!("runs `{program}`"))
        }
        _ => match walk.state.input.clone() {
            Input::Text(text) => judge(walk, program, &text),
            Input::File(file) => shell::script_file(walk, &Arg::literal(file), program),
            Input::Pipe => {
                opaque(format!("`{program}` runs what another command prints, which is not known"))
            }
            Input::Inherited => {
                Assessment::of(Class::LocalCommand, format!("starts `{program}` interactively"))
            }
        },
    })
}

/// Files that are changed in place.
fn judge_edits(paths: &Resolver<'_>, files: &[&Arg]) -> Assessment {
    let mut judged = Assessment::of(Class::Edit, "changes files in place");
    for file in files {
        if let Some(write) = paths.judge(file, Use::Write) {
            judged = worse(judged, write);
        }
    }
    judged
}

/// `python -m module …`: judged by the module's name.
fn python_module(walk: &mut Walk<'_>, program: &str, module: &str, args: &[Arg]) -> Assessment {
    let name = match module {
        "unittest" | "doctest" | "nose" | "nose2" | "trial" => {
            return Assessment::of(Class::Test, "runs tests");
        }
        "venv" | "virtualenv" | "build" | "ensurepip" | "compileall" | "py_compile" => {
            return Assessment::of(Class::Build, "builds or installs");
        }
        "timeit" => {
            let code: Vec<&str> = args.iter().map(|arg| &*arg.text).collect();
            return worse(
                Assessment::of(Class::Read, "only prints"),
                judge(walk, program, &code.join("\n")),
            );
        }
        "json.tool" | "this" | "calendar" | "tokenize" | "ast" | "dis" | "site" | "sysconfig" => {
            return Assessment::of(Class::Read, "only prints");
        }
        "http.server" => return Assessment::of(Class::LocalCommand, "serves files of a directory"),
        name if name.contains('.') => {
            return Assessment::of(Class::Build, format!("runs the module `{module}`"));
        }
        name => name,
    };
    let argv: Vec<Arg> = std::iter::once(Arg::literal(name)).chain(args.iter().cloned()).collect();
    walk.follow_words(Via::Wrapper(program.to_owned()), &argv);
    match table::is_known(name) {
        true => Assessment::of(Class::Read, "judged by the module it runs"),
        false => Assessment::of(Class::Build, format!("runs the module `{module}`")),
    }
}

/// Code in another language.
pub(super) fn judge(walk: &mut Walk<'_>, program: &str, code: &str) -> Assessment {
    if is_unknown(code) {
        return opaque(format!("`{program}` runs code that is only known when it runs"));
    }
    if code.len() > LONGEST_CODE {
        return opaque(format!("`{program}` runs more code than can be analyzed"));
    }
    if let Some(word) = RUNS.iter().find(|word| code.contains(**word)) {
        texts_in(walk, program, code);
        return opaque(format!("`{program}` runs code with `{word}` in it"));
    }
    match SUSPICIOUS.iter().find(|word| code.contains(**word)) {
        Some(word) => opaque(format!("`{program}` runs code with `{word}` in it")),
        None if imports_of_project(code) => imported(),
        None => Assessment::of(Class::LocalCommand, "runs code that only computes"),
    }
}

fn imported() -> Assessment {
    Assessment::of(Class::Build, "runs code of a module that may be the project's")
}

/// Whether code loads a module that is not known to come with its language.
fn imports_of_project(code: &str) -> bool {
    let statements = code.split([';', '\n']).map(str::trim_start);
    let python = statements.clone().filter_map(|statement| {
        let named = statement.strip_prefix("import ");
        named.or_else(|| statement.strip_prefix("from ")?.split(" import").next())
    });
    let is_known = |name: &str| {
        let name = name.trim().trim_matches(['\'', '"', '`', ')']);
        let name = name.split(" as ").next().unwrap_or_default().trim();
        OWN_MODULES.contains(&name.split('.').next().unwrap_or_default())
    };
    let loads_other = python.flat_map(|names| names.split(',')).any(|name| !is_known(name));
    let required = code.split("require").skip(1);
    let argument = |rest: &str| {
        let rest = rest.trim_start().strip_prefix('(').unwrap_or(rest).trim_start();
        rest.split([')', ';', '\n']).next().unwrap_or_default().to_owned()
    };
    loads_other
        || required.map(argument).any(|name| !is_known(&name))
        || code.contains(" from '")
        || code.contains(" from \"")
}

/// Reads the texts in code as commands: each alone, and lists of them as words.
fn texts_in(walk: &mut Walk<'_>, program: &str, code: &str) {
    let via = Via::Code(program.to_owned());
    for group in literals(code) {
        if group.len() > 1 {
            let argv: Vec<Arg> = group.iter().map(|text| Arg::literal(&**text)).collect();
            walk.follow_words(via.clone(), &argv);
        }
        for text in group.iter().filter(|text| !text.trim().is_empty()) {
            walk.follow_text(via.clone(), &Arg::literal(&**text), program);
        }
    }
}

/// `awk 'program' files`.
fn awk(walk: &mut Walk<'_>, program: &str, args: &[Arg]) -> Assessment {
    const VALUES: &str =
        "-F -v -f -e -i -E -l --field-separator --assign --file --source --include --exec --load";
    let invocation = Invocation::new(program, args, VALUES, Style::Bundled);
    let files = invocation.values("-f|--file|-E|--exec").map(Arg::literal).collect::<Vec<_>>();
    let mut judged = Assessment::of(Class::Read, "filters text");
    for file in &files {
        judged = worse(judged, shell::script_file(walk, file, program));
    }
    let mut codes: Vec<String> = invocation.values("-e|--source").map(str::to_owned).collect();
    let mut operands = &invocation.operands[..];
    if files.is_empty()
        && codes.is_empty()
        && let Some((first, rest)) = operands.split_first()
    {
        codes.push(first.text.clone());
        operands = rest;
    }
    for operand in operands {
        if let Some(secret) = walk.paths().judge(operand, Use::Read) {
            judged = worse(judged, secret);
        }
    }
    if invocation.values("-i|--include").any(|library| library == "inplace") {
        judged = worse(judged, judge_edits(&walk.paths(), operands));
    }
    if invocation.has("-l|--load") {
        judged = worse(judged, opaque("loads a library into `awk`"));
    }
    for code in codes {
        judged = worse(judged, awk_code(walk, program, &code));
    }
    judged
}

fn awk_code(walk: &mut Walk<'_>, program: &str, code: &str) -> Assessment {
    let dense: String = code.chars().filter(|c| !c.is_whitespace()).collect();
    let pipes = dense.contains("|\"") || dense.contains("\"|") || dense.contains("|&");
    let pipes = (pipes && !dense.contains("||\"")) || dense.contains("|getline");
    if dense.contains("system(") || pipes || code.contains('@') && dense.contains("@load") {
        texts_in(walk, program, code);
        return opaque("`awk` runs commands from its program");
    }
    if is_unknown(code) {
        return opaque("`awk` runs a program that is only known when it runs");
    }
    let mut judged = Assessment::of(Class::Read, "filters text");
    for target in awk_targets(code) {
        let found = match target {
            Some(file) => walk.paths().judge(&Arg::literal(file), Use::Write),
            None => Some(opaque("`awk` writes files that are only known when it runs")),
        };
        judged = found.into_iter().fold(judged, worse);
    }
    judged
}

/// What `print … > target` writes to in an awk program; `None` for a target that is not a text.
fn awk_targets(code: &str) -> Vec<Option<String>> {
    let mut targets = Vec::new();
    for statement in code.split([';', '{', '}', '\n']) {
        let Some(at) = statement.find("print") else { continue };
        let (mut depth, mut quoted) = (0_usize, false);
        for (index, c) in statement[at..].char_indices() {
            match c {
                '"' => quoted = !quoted,
                '(' if !quoted => depth += 1,
                ')' if !quoted => depth = depth.saturating_sub(1),
                '>' if !quoted && depth == 0 => {
                    let target = statement[at + index..].trim_start_matches('>').trim_start();
                    let text = target.strip_prefix('"').and_then(|text| text.split_once('"'));
                    targets.push(text.map(|(text, _)| text.to_owned()));
                    break;
                }
                _ => {}
            }
        }
    }
    targets
}

/// The quoted texts in code; those with only commas between them form one group.
fn literals(code: &str) -> Vec<Vec<String>> {
    let mut groups: Vec<Vec<String>> = Vec::new();
    let mut between = String::from("start");
    let mut chars = code.chars().peekable();
    while let Some(c) = chars.next() {
        let close = match c {
            '\'' | '"' | '`' => c,
            // `qx{…}`, `%x(…)` and friends.
            '{' if between.ends_with("qx") || between.ends_with("%x") => '}',
            '(' if between.ends_with("qx") || between.ends_with("%x") => ')',
            _ => {
                between.push(c);
                continue;
            }
        };
        let mut text = String::new();
        while let Some(next) = chars.next() {
            match next {
                '\\' => text.extend(chars.next().map(|c| if c == 'n' { '\n' } else { c })),
                next if next == close => break,
                next => text.push(next),
            }
        }
        let joined = !between.is_empty() && between.chars().all(|c| ", [\n\t".contains(c));
        match groups.last_mut() {
            Some(group) if joined => group.push(text),
            _ => groups.push(vec![text]),
        }
        between.clear();
    }
    groups
}
