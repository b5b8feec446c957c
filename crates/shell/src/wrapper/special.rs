//! Programs that run another command in a way of their own: what only their input knows, an end that is a
//! word, another machine, a package.

use super::skip_options;
use crate::classify::opaque;
use crate::invocation::{Invocation, Style};
use crate::state::{Arg, Input, UNKNOWN};
use crate::walk::Walk;
use crate::{Via, expand, special, table};
use windlass_core::policy::class::{Assessment, Class};

/// `xargs rm`: the words, then more that only the input knows.
pub(super) fn xargs(walk: &mut Walk<'_>, program: &str, args: &[Arg]) -> Assessment {
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
    let literal: Vec<Arg> = match program {
        "parallel" => rest.iter().skip_while(|arg| arg.text != ":::").skip(1).cloned().collect(),
        _ => Vec::new(),
    };
    if inner.is_empty() && program == "xargs" {
        return Assessment::of(Class::Read, "prints its input");
    }
    let via = Via::Wrapper(program.to_owned());
    if program == "parallel" {
        follow_parallel(walk, &inner, &literal);
        return Assessment::of(Class::Read, "judged by the command it runs");
    }
    // With an empty input it runs the words as they are.
    let bare = inner.clone();
    inner.push(Arg::unknown());
    walk.in_subshell(via.clone(), |walk| {
        walk.state.input = Input::Inherited;
        walk.record(&inner, via.clone(), Vec::new());
        // Once is enough: inside another it would double with every level.
        if walk.active.iter().any(|active| active == "xargs") {
            return;
        }
        walk.active.push("xargs".to_owned());
        walk.record(&bare, via, Vec::new());
        walk.active.pop();
        if let [.., with, without] = &walk.findings.commands[..]
            && (with.assessment.risk, with.assessment.class)
                >= (without.assessment.risk, without.assessment.class)
        {
            walk.findings.commands.pop();
        }
    });
    Assessment::of(Class::Read, "judged by the command it runs")
}

/// `parallel rm ::: a b`: its words are shell text, and with no words the input is.
fn follow_parallel(walk: &mut Walk<'_>, words: &[Arg], inputs: &[Arg]) {
    let via = Via::Wrapper("parallel".to_owned());
    let mut text = expand::join_fields(words);
    if words.is_empty() {
        for input in inputs {
            walk.follow_text(via.clone(), input, "parallel");
        }
        text = if inputs.is_empty() { Arg::unknown() } else { Arg::literal("") };
    } else {
        text.text.push(' ');
        text.text.push(UNKNOWN);
    }
    let text = Arg::literal(text.text.replace(UNKNOWN, "$__unknown__"));
    walk.follow_text(via, &text, "parallel");
}

/// `find … -exec command ;`; the rest of what `find` may do is in the table.
pub(super) fn find(walk: &mut Walk<'_>, program: &str, args: &[Arg]) -> Option<Assessment> {
    let executes: &[&str] = match program {
        "fd" | "fdfind" => &["-x", "--exec", "-X", "--exec-batch"],
        _ => &["-exec", "-execdir", "-ok", "-okdir"],
    };
    let mut rest = args;
    while let Some(at) = rest.iter().position(|arg| executes.contains(&&*arg.text)) {
        let words = &rest[at + 1..];
        let end = words.iter().position(|arg| matches!(&*arg.text, ";" | "+"));
        let inner = words[..end.unwrap_or(words.len())]
            .iter()
            .map(|arg| Arg { text: arg.text.replace("{}", &UNKNOWN.to_string()), ..arg.clone() });
        let inner: Vec<Arg> = inner.collect();
        if !inner.is_empty() {
            walk.follow_words(Via::Wrapper(program.to_owned()), &inner);
        }
        rest = end.map_or(&[][..], |end| &words[end + 1..]);
    }
    None
}

/// `ssh host command`: the words are joined and read by a shell on that host.
pub(super) fn ssh(walk: &mut Walk<'_>, program: &str, args: &[Arg]) -> Assessment {
    const VALUES: &str = "-b -c -D -E -e -F -I -i -J -L -l -m -O -o -p -Q -R -S -W -w -M -f";
    let options = Invocation::new(program, args, VALUES, Style::Bundled);
    let hooks = ["proxycommand", "localcommand", "knownhostscommand"];
    let texts: Vec<Arg> = options
        .values("-o")
        .filter_map(|option| option.split_once(['=', ' ']))
        .filter(|(name, _)| hooks.contains(&&*name.to_ascii_lowercase()))
        .map(|(_, text)| Arg::literal(text))
        .collect();
    let via = Via::Wrapper(program.to_owned());
    for text in texts {
        walk.follow_text(via.clone(), &text, program);
    }
    let rest = skip_options(args, VALUES);
    if program == "sshpass" {
        walk.follow_words(via, rest);
    } else if let Some((_, words)) = rest.split_first()
        && !words.is_empty()
    {
        let text = expand::join_fields(words);
        walk.follow_text(via, &text, program);
    }
    Assessment::of(Class::Publish, "acts on another machine")
}

/// `npx eslint`: a package's program, judged by its name, fetched when missing.
pub(super) fn npx(walk: &mut Walk<'_>, program: &str, args: &[Arg]) -> Assessment {
    const VALUES: &str = "-p --package -c --call --from --with --python --spec";
    let invocation = Invocation::new(program, args, VALUES, Style::Bundled);
    let via = Via::Wrapper(program.to_owned());
    for text in invocation.values("-c|--call").map(str::to_owned).collect::<Vec<_>>() {
        walk.follow_text(via.clone(), &Arg::literal(text), program);
    }
    let mut rest = skip_options(args, VALUES);
    if program == "pipx" {
        match rest.first().map(|arg| &*arg.text) {
            Some("run") => rest = &rest[1..],
            _ => return Assessment::of(Class::Build, "installs programs"),
        }
    }
    if rest.first().is_some_and(|first| special::is_foreign(&first.text)) {
        return opaque("runs code from an address instead of the usual registry");
    }
    if let Some((first, more)) = rest.split_first() {
        // `eslint@9` and `@scope/name` name the package.
        let name = first.text.trim_start_matches('@');
        let name = name.split('@').next().unwrap_or_default().rsplit('/').next();
        let name = name.unwrap_or_default().to_owned();
        // A known tool is most likely installed, and judged by what it does.
        let known = table::is_known(&name);
        let inner =
            std::iter::once(Arg::literal(name)).chain(more.iter().cloned()).collect::<Vec<_>>();
        walk.follow_words(via, &inner);
        if known {
            return Assessment::of(Class::Read, "judged by the program it runs");
        }
    }
    Assessment::of(Class::Build, "runs a package's program, fetching it when missing")
}

/// `systemd-run`: the system's manager runs the command, outside of everything that holds an agent.
pub(super) fn systemd_run(walk: &mut Walk<'_>, program: &str, args: &[Arg]) -> Assessment {
    const VALUES: &str = "-u --unit -p --property -M --machine -H --host --uid --gid --nice -E --setenv \
        --working-directory --slice --description --service-type --on-calendar --on-active --timer-property";
    let rest = skip_options(args, VALUES);
    walk.follow_words(Via::Wrapper(program.to_owned()), rest);
    let options =
        Invocation::new(program, &args[..args.len() - rest.len()], VALUES, Style::Bundled);
    match options.has("--user") && !options.has("--uid|--gid") {
        true => Assessment::of(Class::Opaque, "`systemd-run` runs it outside the sandbox"),
        false => Assessment::of(Class::Catastrophic, "`systemd-run` asks for more privileges"),
    }
}
