//! Programs that run another command: which of their words are that command.
//!
//! Invariant: wrapping never hides. The inner command is judged as if it stood alone, and the wrapper
//! adds its own class to it.

mod special;
mod table;

use self::table::WRAPPERS;
use super::Via;
use super::environment::{self, Scope};
use super::invocation::{Invocation, Style};
use super::options;
use super::state::Arg;
use super::walk::Walk;
use windlass_core::policy::class::{Assessment, Class};

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

/// Whether a program is there to run other commands.
pub(super) fn is_wrapper(program: &str) -> bool {
    const SPECIAL: &[&str] = &["xargs", "gxargs", "parallel", "ssh", "npx", "bunx", "pnpx", "uvx"];
    SPECIAL.contains(&program)
        || is_loader(program)
        || WRAPPERS.iter().any(|wrapper| {
            wrapper.names.contains(&program) && !matches!(wrapper.runs, Runs::After(..))
        })
}

/// The loader of the system, which runs the program it is given: `/lib64/ld-linux-x86-64.so.2 /bin/rm`.
fn is_loader(program: &str) -> bool {
    let loader = program.starts_with("ld-linux") || program.starts_with("ld-musl");
    loader || matches!(program, "ld.so" | "ld64.so.1" | "ld64.so.2")
}

/// Judges a wrapper and what it runs; `None` when `program` is not a wrapper, or runs nothing this time.
pub(super) fn judge(walk: &mut Walk<'_>, program: &str, args: &[Arg]) -> Option<Assessment> {
    match program {
        "xargs" | "gxargs" | "parallel" => return Some(special::xargs(walk, program, args)),
        "find" | "gfind" | "fd" | "fdfind" => return special::find(walk, program, args),
        "ssh" | "mosh" | "dropbear" | "autossh" | "sshpass" => {
            return Some(special::ssh(walk, program, args));
        }
        "command" if lookup(args) => {
            return Some(Assessment::of(Class::Read, "looks a name up"));
        }
        loader if is_loader(loader) => {
            let rest = skip_options(args, "--library-path --preload --argv0 --audit");
            walk.follow_words(Via::Wrapper(program.to_owned()), rest);
            return Some(Assessment::of(Class::Read, "runs another command, judged separately"));
        }
        "systemd-run" => return Some(special::systemd_run(walk, program, args)),
        "npx" | "bunx" | "pnpx" | "uvx" | "pipx" => return Some(special::npx(walk, program, args)),
        _ => {}
    }
    let mut wrappers = WRAPPERS.iter().filter(|wrapper| wrapper.names.contains(&program));
    let (wrapper, rest) =
        wrappers.find_map(|wrapper| Some((wrapper, wrapper.inner(program, args)?)))?;
    Some(judge_wrapped(walk, wrapper, program, args, rest))
}

fn judge_wrapped(
    walk: &mut Walk<'_>,
    wrapper: &Wrapper,
    program: &str,
    args: &[Arg],
    rest: &[Arg],
) -> Assessment {
    let via = Via::Wrapper(program.to_owned());
    if !wrapper.texts.is_empty() {
        let invocation = Invocation::new(program, args, wrapper.values, Style::Bundled);
        for text in invocation.values(wrapper.texts).map(str::to_owned).collect::<Vec<_>>() {
            walk.follow_text(via.clone(), &Arg::literal(text), program);
        }
    }
    if program == "env" {
        env_options(walk, args);
    }
    if matches!(program, "strace" | "ltrace") {
        // `-o '|command'` gives the trace to a command.
        let piped =
            args.iter().find_map(|arg| arg.text.trim_start_matches("-o").strip_prefix(['|', '!']));
        if let Some(text) = piped {
            walk.follow_argument(text, program);
        }
    }
    if wrapper.values == table::DOCKER_VALUES {
        entry_point(walk, program, args, rest);
    }
    match wrapper.runs {
        Runs::Text(_) => {
            for text in texts(program, rest) {
                walk.follow_text(via.clone(), &text, program);
            }
        }
        Runs::Words(_) | Runs::After(..) => {
            // `env` takes any word with an equals sign for a variable, whatever its name.
            let assigns = |arg: &&Arg| match program {
                "env" | "genv" => arg.text.contains('='),
                _ => is_assignment(&arg.text),
            };
            let assigns = rest.iter().take_while(assigns).count();
            for arg in &rest[..assigns] {
                if let Some((name, value)) = arg.text.split_once('=') {
                    let values = vec![vec![Arg::literal(value)]];
                    environment::judge_assignment(walk, name, &values, Scope::Exported);
                }
            }
            let inner = &rest[assigns..];
            if !inner.is_empty() {
                walk.in_subshell(via.clone(), |walk| {
                    // A wrapper runs programs: functions and aliases mean nothing to it.
                    walk.state.functions.clear();
                    walk.state.aliases.clear();
                    walk.record(inner, via.clone(), Vec::new());
                });
            }
            // One word with blanks is text for a shell: `watchexec 'make test'`.
            if let [only] = inner
                && only.text.contains(' ')
                && options::looks_like_command(&only.text)
            {
                walk.follow_text(via, only, program);
            }
        }
    }
    Assessment::of(wrapper.class, format!("`{program}` {}", wrapper.reason))
}

/// `docker run --entrypoint rm image -r /x`: the words after the image are the entry point's.
fn entry_point(walk: &mut Walk<'_>, program: &str, args: &[Arg], rest: &[Arg]) {
    let invocation = Invocation::new(program, args, table::DOCKER_VALUES, Style::Bundled);
    let Some(entry) = invocation.values("--entrypoint").next() else { return };
    let argv: Vec<Arg> = [Arg::literal(entry)].into_iter().chain(rest.iter().cloned()).collect();
    walk.follow_words(Via::Wrapper(program.to_owned()), &argv);
}

/// `env -S 'words' more` splits text into a command; everything after it belongs to that.
fn env_options(walk: &mut Walk<'_>, args: &[Arg]) {
    let text_of = |(at, arg): (usize, &Arg)| Some((at, split_text(&arg.text)?.to_owned()));
    let Some((at, glued)) = args.iter().enumerate().find_map(text_of) else {
        return;
    };
    let mut rest = args[at + 1..].iter();
    let mut text = match glued.is_empty() {
        true => rest.next().map(|arg| arg.text.clone()).unwrap_or_default(),
        false => glued,
    };
    for arg in rest {
        text.push(' ');
        text.push_str(&arg.to_source());
    }
    let text = Arg::literal(format!("env {text}"));
    walk.follow_text(Via::Wrapper("env".to_owned()), &text, "env");
}

/// What is glued to the option of `env` that splits a text: `-S`, `-iS`, `--split`, `--split-string`.
fn split_text(option: &str) -> Option<&str> {
    if let Some(long) = option.strip_prefix("--") {
        let (name, text) = long.split_once('=').unwrap_or((long, ""));
        return (!name.is_empty() && "split-string".starts_with(name)).then_some(text);
    }
    let letters = option.strip_prefix('-')?;
    let text = letters.trim_start_matches(['i', '0', 'v']).strip_prefix('S')?;
    Some(text.strip_prefix('=').unwrap_or(text))
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
                // An operand of its own may be left out: `setarch -R rm x`.
                let left_out = skip == 1
                    && rest.first().is_some_and(|arg| options::looks_like_command(&arg.text));
                let skip = if left_out { 0 } else { skip };
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
        "watch" => vec![super::expand::join_fields(rest)],
        "tmux" | "screen" | "byobu" => {
            // Subcommands and their options come first; what holds a blank or comes last is text.
            let words: Vec<Arg> =
                rest.iter().filter(|arg| arg.text.contains(' ')).cloned().collect();
            let tail = rest.iter().skip_while(|arg| !arg.text.starts_with('-')).cloned();
            let tail: Vec<Arg> = tail.filter(|arg| !arg.text.starts_with('-')).collect();
            let plain = rest.iter().filter(|arg| !arg.text.starts_with('-')).cloned();
            let skip = usize::from(program == "tmux");
            let plain: Vec<Arg> = plain.skip(skip).collect();
            [
                words,
                vec![super::expand::join_fields(&tail)],
                vec![super::expand::join_fields(&plain)],
            ]
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
