//! Programs that run another command: which of their words are that command.
//!
//! Invariant: wrapping never hides. The inner command is judged as if it stood alone, and the wrapper
//! adds its own class to it.

use super::How;
use super::invocation::{Invocation, Style};
use super::state::{Arg, UNKNOWN};
use super::walk::Walk;
use crate::policy::class::{Assessment, Class};

/// How a wrapper names the command it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Runs {
    /// The words after its options and this many operands of its own.
    Words(usize),
    /// The same words, joined and read as shell text.
    Text(usize),
    /// The words after a subcommand, options and operands: `docker exec -it box …`.
    After(&'static str, usize),
}

/// A program that runs another command.
struct Wrapper {
    names: &'static [&'static str],
    /// Options whose value is a word of its own.
    values: &'static str,
    /// Options whose value is shell text that it runs.
    texts: &'static str,
    runs: Runs,
    class: Class,
    reason: &'static str,
}

const fn plain(names: &'static [&'static str], values: &'static str, skip: usize) -> Wrapper {
    let (class, reason) = (Class::Read, "runs another command, judged by itself");
    Wrapper { names, values, texts: "", runs: Runs::Words(skip), class, reason }
}

const fn after(
    names: &'static [&'static str],
    subcommand: &'static str,
    values: &'static str,
    skip: usize,
    class: Class,
    reason: &'static str,
) -> Wrapper {
    Wrapper { names, values, texts: "", runs: Runs::After(subcommand, skip), class, reason }
}

const fn privileged(names: &'static [&'static str], values: &'static str, skip: usize) -> Wrapper {
    let (class, reason) = (Class::Catastrophic, "asks for more privileges");
    Wrapper { names, values, texts: "-c|--command", runs: Runs::Words(skip), class, reason }
}

const DOCKER_VALUES: &str = "-e --env --env-file -u --user -w --workdir -v --volume -p --publish --name \
    --network --mount --entrypoint -l --label --cpus -m --memory --platform -h --hostname --add-host \
    --device --cap-add --cap-drop --security-opt --ulimit --restart --pull --gpus --ipc --pid --tmpfs \
    -H --host --context -c --config -f --file --project-name --profile --index --detach-keys";

const WRAPPERS: &[Wrapper] = &[
    plain(&["env", "genv"], "-u --unset -C --chdir -S --split-string --block-signal -a --argv0", 0),
    plain(
        &["nohup", "setsid", "unbuffer", "eatmydata", "fakeroot", "caffeinate", "catchsegv"],
        "",
        0,
    ),
    plain(&["command", "builtin", "nocorrect", "noglob", "exec", "coproc"], "-a", 0),
    plain(&["time", "gtime"], "-o --output -f --format", 0),
    plain(&["nice", "gnice"], "-n --adjustment", 0),
    plain(&["ionice"], "-c --class -n --classdata", 0),
    plain(&["timeout", "gtimeout"], "-s --signal -k --kill-after", 1),
    plain(&["stdbuf", "gstdbuf"], "-i --input -o --output -e --error", 0),
    plain(&["chrt", "taskset", "setarch", "numactl"], "", 1),
    plain(&["prlimit", "choom", "uclampset"], "-n", 0),
    plain(&["torsocks", "proxychains", "proxychains4", "tsocks", "torify"], "-f", 0),
    plain(&["strace", "ltrace", "valgrind", "rr", "heaptrack"], "-e -o -s -p -u -a -E -P -S", 0),
    plain(&["busybox", "toybox"], "", 0),
    plain(&["cross-env", "dotenv", "doppler", "with-env"], "-f --file -e", 0),
    plain(
        &["ts-node-dev", "rtk", "proot", "firejail", "bwrap", "winpty", "arch", "entr"],
        "-S -b -w",
        0,
    ),
    plain(
        &["daemonize", "start-stop-daemon", "systemd-run", "dbus-run-session", "xvfb-run"],
        "-p -u --unit -c -e -o -l -E",
        0,
    ),
    Wrapper {
        names: &["watch"],
        values: "-n --interval",
        texts: "",
        runs: Runs::Text(0),
        class: Class::Read,
        reason: "repeats another command, judged by itself",
    },
    Wrapper {
        names: &["script"],
        values: "-c --command -T -B -I -O -E -m -o",
        texts: "-c|--command",
        runs: Runs::Words(usize::MAX),
        class: Class::LocalCommand,
        reason: "records a terminal session",
    },
    Wrapper {
        names: &["flock"],
        values: "-w --timeout -E -c --command",
        texts: "-c|--command",
        runs: Runs::Words(1),
        class: Class::Read,
        reason: "runs another command, judged by itself",
    },
    Wrapper {
        names: &["hyperfine", "concurrently", "npm-run-all", "run-p", "run-s"],
        values: "-w --warmup -r --runs -p --prepare -n --names -c --cleanup -s --setup",
        texts: "-p|--prepare|-c|--cleanup|-s|--setup",
        runs: Runs::Text(0),
        class: Class::LocalCommand,
        reason: "runs commands",
    },
    Wrapper {
        names: &["nodemon", "watchexec"],
        values: "-x --exec -w --watch -e --ext",
        texts: "-x|--exec",
        runs: Runs::Words(0),
        class: Class::LocalCommand,
        reason: "runs a command at every change",
    },
    Wrapper {
        names: &["nix-shell"],
        values: "-p --run --command -A",
        texts: "--run|--command",
        runs: Runs::Words(usize::MAX),
        class: Class::Build,
        reason: "fetches packages",
    },
    Wrapper {
        names: &["tmux", "screen", "byobu"],
        values: "-S -L -t -s -n -c",
        texts: "",
        runs: Runs::Text(0),
        class: Class::LocalCommand,
        reason: "starts a terminal session",
    },
    privileged(
        &["sudo", "doas", "gosu", "pkexec", "sudo-rs", "run0", "please", "dzdo"],
        "-u --user -g --group -p --prompt -h --host -C --close-from -r --role -t --type -D --chdir -T",
        0,
    ),
    privileged(&["su", "runuser", "sg"], "-c --command -s --shell -g -G -w", usize::MAX),
    privileged(&["chroot", "nsenter", "unshare", "setpriv", "capsh"], "-u -t -r -S -G", 0),
    after(
        &["docker", "podman", "nerdctl"],
        "exec",
        DOCKER_VALUES,
        1,
        Class::LocalCommand,
        "runs a command in a container",
    ),
    after(
        &["docker", "podman", "nerdctl"],
        "run|create",
        DOCKER_VALUES,
        1,
        Class::Build,
        "starts a container",
    ),
    after(
        &["docker", "podman"],
        "compose exec|compose run",
        DOCKER_VALUES,
        1,
        Class::LocalCommand,
        "runs a command in a container",
    ),
    after(
        &["docker-compose"],
        "exec|run",
        DOCKER_VALUES,
        1,
        Class::LocalCommand,
        "runs a command in a container",
    ),
    after(
        &["kubectl", "oc", "k"],
        "exec",
        "-n --namespace -c --container --context --kubeconfig",
        1,
        Class::Production,
        "runs a command in a cluster",
    ),
    after(
        &["poetry", "pipenv", "pdm", "rye", "hatch", "uv", "pixi", "conda", "mamba"],
        "run",
        "--with --python -p --extra --group --env-file -n -e -m --directory -C",
        0,
        Class::LocalCommand,
        "runs a command of the project's environment",
    ),
    after(
        &[
            "bundle", "mise", "rtx", "asdf", "opam", "stack", "cabal", "pyenv", "rbenv", "volta",
            "fnm", "mix",
        ],
        "exec|x|run",
        "",
        0,
        Class::LocalCommand,
        "runs a command of the project's environment",
    ),
    after(
        &["direnv"],
        "exec",
        "",
        1,
        Class::LocalCommand,
        "runs a command of the project's environment",
    ),
    after(&["rustup"], "run", "", 1, Class::LocalCommand, "runs a command of a toolchain"),
    after(
        &["npm", "pnpm", "yarn"],
        "exec|x|dlx",
        "-p --package -c --call -w --workspace",
        0,
        Class::Build,
        "runs a package's program, fetching it when missing",
    ),
    after(&["perf"], "stat|record|trace", "-e -o -p", 0, Class::LocalCommand, "measures a command"),
    after(&["git"], "bisect run", "-C -c", 0, Class::LocalCommand, "runs a command at every step"),
    after(&["nix"], "develop|shell", "-c --command", 0, Class::Build, "fetches packages"),
    after(
        &["aws-vault", "chamber", "op", "infisical", "sops"],
        "exec|run|exec-env",
        "",
        1,
        Class::Publish,
        "runs a command with secrets",
    ),
];

impl Walk<'_> {
    /// Judges a wrapper and what it runs; `None` when `program` is none, or runs nothing this time.
    pub(super) fn wrapper(&mut self, program: &str, args: &[Arg]) -> Option<Assessment> {
        match program {
            "xargs" | "gxargs" | "parallel" => return Some(self.xargs(program, args)),
            "find" | "gfind" | "fd" | "fdfind" => return self.find(program, args),
            "ssh" | "mosh" | "dropbear" | "autossh" | "sshpass" => {
                return Some(self.ssh(program, args));
            }
            "command" if lookup(args) => {
                return Some(Assessment::of(Class::Read, "looks a name up"));
            }
            "npx" | "bunx" | "pnpx" | "uvx" | "pipx" => return Some(self.npx(program, args)),
            _ => {}
        }
        let mut result: Option<Assessment> = None;
        for wrapper in WRAPPERS.iter().filter(|wrapper| wrapper.names.contains(&program)) {
            if let Some(rest) = wrapper.inner(program, args) {
                result = Some(self.wrapped(wrapper, program, args, rest));
                break;
            }
        }
        result
    }

    fn wrapped(
        &mut self,
        wrapper: &Wrapper,
        program: &str,
        args: &[Arg],
        rest: &[Arg],
    ) -> Assessment {
        let how = How::Wrapper(program.to_owned());
        if !wrapper.texts.is_empty() {
            let invocation = Invocation::new(program, args, wrapper.values, Style::Bundled);
            for text in invocation.values(wrapper.texts).map(str::to_owned).collect::<Vec<_>>() {
                self.apart(how.clone(), |walk| walk.script_text(&Arg::literal(text), program));
            }
        }
        if program == "env" {
            self.env_options(args);
        }
        match wrapper.runs {
            Runs::Text(_) => {
                for text in texts(program, rest) {
                    self.apart(how.clone(), |walk| walk.script_text(&text, program));
                }
            }
            Runs::Words(_) | Runs::After(..) => {
                let assigns = rest.iter().take_while(|arg| is_assignment(&arg.text)).count();
                for arg in &rest[..assigns] {
                    if let Some((name, value)) = arg.text.split_once('=') {
                        let values = vec![vec![Arg::literal(value)]];
                        super::environment::assigned(self, name, &values);
                    }
                }
                let inner = &rest[assigns..];
                if !inner.is_empty() {
                    self.apart(how.clone(), |walk| {
                        // A wrapper runs programs: functions and aliases mean nothing to it.
                        walk.state.functions.clear();
                        walk.state.aliases.clear();
                        walk.record(inner.to_vec(), how, Vec::new());
                    });
                }
            }
        }
        Assessment::of(wrapper.class, format!("`{program}` {}", wrapper.reason))
    }

    /// `env -S 'words' more` splits text into a command; everything after it belongs to that.
    fn env_options(&mut self, args: &[Arg]) {
        let splits = |arg: &Arg| {
            let text = arg.text.strip_prefix("--split-string").or(arg.text.strip_prefix("-S"))?;
            Some(text.strip_prefix('=').unwrap_or(text).to_owned())
        };
        let Some((at, glued)) =
            args.iter().enumerate().find_map(|(at, arg)| Some((at, splits(arg)?)))
        else {
            return;
        };
        let mut rest = args[at + 1..].iter();
        let mut text = match glued.is_empty() {
            true => rest.next().map(|arg| arg.text.clone()).unwrap_or_default(),
            false => glued,
        };
        for arg in rest {
            text.push(' ');
            text.push_str(&super::builtin::requoted(arg));
        }
        let text = Arg::literal(format!("env {text}"));
        self.apart(How::Wrapper("env".to_owned()), |walk| walk.script_text(&text, "env"));
    }

    /// `xargs rm`: the words, then more that only the input knows.
    fn xargs(&mut self, program: &str, args: &[Arg]) -> Assessment {
        const VALUES: &str = "-I -n -P -L -d -s -a -E --max-args --max-procs --max-lines --delimiter \
            --arg-file --max-chars -j --jobs --joblog --colsep -C -N --timeout --results --tmpdir -S";
        let rest = skip_options(args, VALUES);
        let options = &args[..args.len() - rest.len()];
        let invocation = Invocation::new(program, options, VALUES, Style::Bundled);
        let replaced = invocation.values("-I|-i|--replace").next();
        let default = program == "parallel" || invocation.has("-i|--replace");
        let token = replaced.or(default.then_some("{}")).map(str::to_owned);
        let own: Vec<Arg> = match program {
            "parallel" => {
                let end = rest.iter().position(|arg| matches!(&*arg.text, ":::" | "::::" | ":::+"));
                rest[..end.unwrap_or(rest.len())].to_vec()
            }
            _ => rest.to_vec(),
        };
        let mut inner: Vec<Arg> = own
            .into_iter()
            .map(|arg| match &token {
                Some(token) if !token.is_empty() && arg.text.contains(&**token) => {
                    Arg { text: arg.text.replace(&**token, &UNKNOWN.to_string()), ..arg }
                }
                _ => arg,
            })
            .collect();
        let literal = match program {
            "parallel" => {
                rest.iter().skip_while(|arg| arg.text != ":::").skip(1).cloned().collect()
            }
            _ => Vec::new(),
        };
        if inner.is_empty() && program == "xargs" {
            return Assessment::of(Class::Read, "prints its input");
        }
        let how = How::Wrapper(program.to_owned());
        if program == "parallel" {
            // Its words are shell text, and with no words the input is.
            let mut text = super::expand::joined(&inner);
            if inner.is_empty() {
                for arg in &literal {
                    self.apart(how.clone(), |walk| walk.script_text(arg, program));
                }
                text = if literal.is_empty() { Arg::unknown() } else { Arg::literal("") };
            } else {
                text.text.push(' ');
                text.text.push(UNKNOWN);
            }
            let text = Arg::literal(text.text.replace(UNKNOWN, "$__unknown__"));
            self.apart(how, |walk| walk.script_text(&text, program));
            return Assessment::of(Class::Read, "judged by the command it runs");
        }
        // With an empty input it runs the words as they are.
        let bare = inner.clone();
        inner.push(Arg::unknown());
        self.apart(how.clone(), |walk| {
            walk.state.input = super::state::Input::Inherited;
            walk.record(inner, how.clone(), Vec::new());
            // Once is enough: inside another it would double with every level.
            if walk.active.iter().any(|active| active == "xargs") {
                return;
            }
            walk.active.push("xargs".to_owned());
            walk.record(bare, how, Vec::new());
            walk.active.pop();
            if let [.., with, without] = &walk.found[..]
                && (with.assessment.risk, with.assessment.class)
                    >= (without.assessment.risk, without.assessment.class)
            {
                walk.found.pop();
            }
        });
        Assessment::of(Class::Read, "judged by the command it runs")
    }

    /// `find … -exec command ;`; the rest of what `find` may do is in the table.
    fn find(&mut self, program: &str, args: &[Arg]) -> Option<Assessment> {
        let executes: &[&str] = match program {
            "fd" | "fdfind" => &["-x", "--exec", "-X", "--exec-batch"],
            _ => &["-exec", "-execdir", "-ok", "-okdir"],
        };
        let mut rest = args;
        while let Some(at) = rest.iter().position(|arg| executes.contains(&&*arg.text)) {
            let words = &rest[at + 1..];
            let end = words.iter().position(|arg| matches!(&*arg.text, ";" | "+"));
            let inner = words[..end.unwrap_or(words.len())].iter().map(|arg| Arg {
                text: arg.text.replace("{}", &UNKNOWN.to_string()),
                ..arg.clone()
            });
            let inner: Vec<Arg> = inner.collect();
            if !inner.is_empty() {
                let how = How::Wrapper(program.to_owned());
                self.apart(how.clone(), |walk| walk.record(inner, how, Vec::new()));
            }
            rest = end.map_or(&[][..], |end| &words[end + 1..]);
        }
        None
    }

    /// `ssh host command`: the words are joined and read by a shell over there.
    fn ssh(&mut self, program: &str, args: &[Arg]) -> Assessment {
        const VALUES: &str = "-b -c -D -E -e -F -I -i -J -L -l -m -O -o -p -Q -R -S -W -w -M -f";
        let options = Invocation::new(program, args, VALUES, Style::Bundled);
        let hooks = ["proxycommand", "localcommand", "knownhostscommand"];
        let texts: Vec<Arg> = options
            .values("-o")
            .filter_map(|option| option.split_once(['=', ' ']))
            .filter(|(name, _)| hooks.contains(&&*name.to_ascii_lowercase()))
            .map(|(_, text)| Arg::literal(text))
            .collect();
        let how = How::Wrapper(program.to_owned());
        for text in texts {
            self.apart(how.clone(), |walk| walk.script_text(&text, program));
        }
        let rest = skip_options(args, VALUES);
        if program == "sshpass" {
            let rest = rest.to_vec();
            self.apart(how.clone(), |walk| walk.record(rest, how, Vec::new()));
        } else if let Some((_, words)) = rest.split_first()
            && !words.is_empty()
        {
            let text = super::expand::joined(words);
            self.apart(how, |walk| walk.script_text(&text, program));
        }
        Assessment::of(Class::Publish, "acts on another machine")
    }

    /// `npx eslint`: a package's program, judged by its name, fetched when missing.
    fn npx(&mut self, program: &str, args: &[Arg]) -> Assessment {
        const VALUES: &str = "-p --package -c --call --from --with --python --spec";
        let invocation = Invocation::new(program, args, VALUES, Style::Bundled);
        let how = How::Wrapper(program.to_owned());
        for text in invocation.values("-c|--call").map(str::to_owned).collect::<Vec<_>>() {
            self.apart(how.clone(), |walk| walk.script_text(&Arg::literal(text), program));
        }
        let mut rest = skip_options(args, VALUES);
        if program == "pipx" {
            match rest.first().map(|arg| &*arg.text) {
                Some("run") => rest = &rest[1..],
                _ => return Assessment::of(Class::Build, "installs programs"),
            }
        }
        if let Some((first, more)) = rest.split_first() {
            // `eslint@9` and `@scope/name` name the package.
            let name = first.text.trim_start_matches('@');
            let name = name.split('@').next().unwrap_or_default().rsplit('/').next();
            let name = name.unwrap_or_default().to_owned();
            // A known tool is most likely installed, and judged by what it does.
            let known = super::table::knows(&name);
            let inner = std::iter::once(Arg::literal(name)).chain(more.iter().cloned()).collect();
            self.apart(how.clone(), |walk| walk.record(inner, how, Vec::new()));
            if known {
                return Assessment::of(Class::Read, "judged by the program it runs");
            }
        }
        Assessment::of(Class::Build, "runs a package's program, fetching it when missing")
    }
}

impl Wrapper {
    /// The words that are the command; `None` when this use of the program runs nothing.
    fn inner<'a>(&self, program: &str, args: &'a [Arg]) -> Option<&'a [Arg]> {
        match self.runs {
            Runs::Words(skip) | Runs::Text(skip) => {
                let mut rest = skip_options(args, self.values);
                if program == "env" {
                    // A lone dash is an option of `env`.
                    while rest.first().is_some_and(|arg| arg.text == "-") {
                        rest = skip_options(&rest[1..], self.values);
                    }
                }
                Some(rest.get(skip..).unwrap_or_default())
            }
            Runs::After(subcommands, skip) => {
                let mut found = None;
                for subcommand in subcommands.split('|') {
                    let mut rest = args;
                    let all = subcommand.split(' ').all(|word| {
                        rest = skip_options(rest, self.values);
                        let is = rest.first().is_some_and(|arg| arg.text == word);
                        rest = rest.get(1..).unwrap_or_default();
                        is
                    });
                    if all {
                        found = Some(rest);
                    }
                }
                let rest = skip_options(found?, self.values);
                Some(rest.get(skip..).map_or(&[][..], skip_options_once))
            }
        }
    }
}

/// A `--` between a wrapper's own words and the command.
fn skip_options_once(args: &[Arg]) -> &[Arg] {
    match args {
        [first, rest @ ..] if first.text == "--" => rest,
        _ => args,
    }
}

/// The words after leading options and their values.
fn skip_options<'a>(mut args: &'a [Arg], values: &str) -> &'a [Arg] {
    while let [first, rest @ ..] = args {
        let text = &*first.text;
        if text == "--" {
            return rest;
        }
        if !text.starts_with(['-', '+']) || text == "-" {
            break;
        }
        let takes = |name: &str| values.split_whitespace().any(|known| known == name);
        let bundled = text.strip_prefix('-').filter(|text| !text.starts_with('-'));
        let last = bundled.and_then(|text| text.chars().last()).map(|c| format!("-{c}"));
        let takes_next = match bundled {
            // Only the last letter of a bundle can take the next word.
            Some(letters) => {
                let first = letters.chars().next().map(|c| format!("-{c}"));
                let glued = letters.chars().count() > 1 && first.is_some_and(|first| takes(&first));
                !glued && last.is_some_and(|last| takes(&last))
            }
            None => takes(text),
        };
        args = if takes_next { rest.get(1..).unwrap_or_default() } else { rest };
    }
    args
}

/// The shell texts among a wrapper's words: one text of all, or each word one.
fn texts(program: &str, rest: &[Arg]) -> Vec<Arg> {
    match program {
        "watch" => vec![super::expand::joined(rest)],
        "tmux" | "screen" | "byobu" => {
            // Subcommands and their options come first; what holds a blank or comes last is text.
            let words: Vec<Arg> =
                rest.iter().filter(|arg| arg.text.contains(' ')).cloned().collect();
            let tail = rest.iter().skip_while(|arg| !arg.text.starts_with('-')).cloned();
            let tail: Vec<Arg> = tail.filter(|arg| !arg.text.starts_with('-')).collect();
            let plain = rest.iter().filter(|arg| !arg.text.starts_with('-')).cloned();
            let skip = usize::from(program == "tmux");
            let plain: Vec<Arg> = plain.skip(skip).collect();
            [words, vec![super::expand::joined(&tail)], vec![super::expand::joined(&plain)]]
                .concat()
        }
        _ => rest.to_vec(),
    }
}

fn is_assignment(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

/// `command -v name` only looks a name up.
fn lookup(args: &[Arg]) -> bool {
    args.first().is_some_and(|arg| {
        arg.text.starts_with('-') && !arg.text.starts_with("--") && arg.text.contains(['v', 'V'])
    })
}
