//! Files that say what an agent may do, changed in ways that the table's rows do not see: by the name that a file
//! gets in a directory, by an option, by a directory to work in, by what an archive or a patch holds.
//!
//! What is in an archive or a tree is not known here. It is noted as an [`Arrival`], and whoever can read files
//! looks.

pub(super) mod git;
mod unnamed;

use super::classify::worse;
use super::invocation::{Invocation, Style};
use super::paths::{self, Use};
use super::state::{Arg, Input, UNKNOWN};
use super::walk::Walk;
use windlass_core::policy::class::{Assessment, Class};
use windlass_core::policy::{Arrival, ArrivalSource};

/// Options of copying programs whose value is a word of its own.
const COPY_VALUES: &str = "-t --target-directory -S --suffix -m --mode -o --owner -g --group -e --rsh -f --filter \
    --exclude --include --files-from";

/// Options of unpacking and patching programs whose value is a word of its own.
const UNPACK_VALUES: &str = "-f --file -C --directory -d --one-top-level -i --input -p --strip -D -B -r -X -T \
    --exclude --work-tree --git-dir -c";

/// Programs that only read, but for the file that an option names.
const REPORT_OPTIONS: &[(&str, &str)] = &[
    ("time", "-o|--output"),
    ("gtime", "-o|--output"),
    ("strace", "-o|--output"),
    ("ltrace", "-o|--output"),
    ("valgrind", "--log-file|--xml-file"),
    ("shuf", "-o|--output"),
    ("env", "-C|--chdir"),
    ("genv", "-C|--chdir"),
];

/// Options by which a check changes files.
const REPAIRS: &[&str] = &["--write", "-w", "--fix", "-i", "--in-place", "--apply", "--fix-only"];

/// What a call does to rules beyond what was found; `judged` is its class without that.
pub(super) fn judge(
    walk: &mut Walk<'_>,
    program: &str,
    args: &[Arg],
    judged: Class,
) -> Option<Assessment> {
    let candidates = match program {
        "cp" | "gcp" | "mv" | "gmv" | "ln" | "link" | "install" | "rsync" | "ditto" => {
            copied_names(walk, program, args)
        }
        "gunzip" | "gzip" | "bunzip2" | "bzip2" | "unxz" | "xz" | "unzstd" | "zstd" | "lz4"
        | "unlz4" | "lzip" | "uncompress" | "brotli" => unpacked_names(args),
        "curl" | "wget" | "wget2" | "aria2c" => downloaded_name(walk, program, args),
        "tar" | "gtar" | "bsdtar" | "unzip" | "cpio" | "7z" | "7za" | "unrar" | "ar" | "patch"
        | "gpatch" => unpacked(walk, program, args),
        "git" | "hub" => git::by_git(walk, args),
        "gh" | "glab" => git::by_code_host(walk, args),
        "uniq" => Invocation::new(program, args, "-f -s -w", Style::Bundled)
            .operands
            .get(1)
            .map(|arg| arg.text.clone())
            .into_iter()
            .collect(),
        _ => unnamed::judge(walk, program, args)
            .unwrap_or_else(|| named_files(program, args, judged)),
    };
    let paths = walk.paths();
    let found = candidates.into_iter().filter_map(|path| {
        let found = paths.judge(&Arg::literal(path), Use::Write)?;
        (found.class == Class::Production).then_some(found)
    });
    found.reduce(worse)
}

/// Every word of a program that changes something and of which no more is known; of the others the files that they
/// report into.
fn named_files(program: &str, args: &[Arg], judged: Class) -> Vec<String> {
    if let Some((_, options)) = REPORT_OPTIONS.iter().find(|(name, _)| *name == program) {
        let values = options.replace('|', " ");
        let call = Invocation::new(program, args, &values, Style::Bundled);
        return call.values(options).map(str::to_owned).collect();
    }
    let moves = |arg: &Arg| matches!(&*arg.text, "-m" | "--move");
    let changes = match judged {
        Class::Edit | Class::LocalCommand | Class::Build => {
            program != "zip" || args.iter().any(moves)
        }
        // A check that repairs what it finds.
        Class::Test => args.iter().any(|arg| REPAIRS.contains(&&*arg.text)),
        Class::Read
        | Class::Note
        | Class::Ledger
        | Class::Delegate
        | Class::Publish
        | Class::Production
        | Class::Destructive
        | Class::Opaque
        | Class::Catastrophic => false,
    };
    if !changes {
        return Vec::new();
    }
    let value = |arg: &Arg| match arg.text.split_once('=') {
        Some((_, value)) => value.to_owned(),
        // A letter before the path is an option's: `-oAGENTS.md`.
        None => match arg.text.strip_prefix('-') {
            Some(option) => option.chars().skip(1).collect(),
            None => arg.text.clone(),
        },
    };
    args.iter().map(value).collect()
}

/// `cp evil/AGENTS.md .`: the names that copies and links get where the target is a directory.
fn copied_names(walk: &mut Walk<'_>, program: &str, args: &[Arg]) -> Vec<String> {
    let call = Invocation::new(program, args, COPY_VALUES, Style::Bundled);
    let into = call.values("-t|--target-directory").next();
    let (sources, target) = match (into, call.operands.split_last()) {
        (Some(into), _) => (&call.operands[..], into),
        (None, Some((last, sources))) if !sources.is_empty() => (sources, &*last.text),
        // `ln -s ../AGENTS.md` makes a link of that name here; so does `install -d DIR`.
        (None, _) if program == "install" => {
            return call.operands.iter().map(|arg| arg.text.clone()).collect();
        }
        (None, _) => (&call.operands[..], "."),
    };
    let mut candidates = Vec::new();
    let links = matches!(program, "ln" | "link")
        || matches!(program, "cp" | "gcp") && call.has("-l|--link|-s|--symbolic-link");
    if links {
        // Writing to one name of a file changes it under the other.
        let linked = sources.iter().map(|source| source.text.clone());
        let from_link =
            sources.iter().map(|source| paths::join(directory_of(target), &source.text));
        candidates.extend(linked.chain(from_link));
    }
    if call.has("-T|--no-target-directory") {
        let trees = sources.iter().map(|source| source.text.clone()).collect::<Vec<_>>();
        trees.iter().for_each(|tree| note(walk, ArrivalSource::Tree, tree, target));
        return candidates;
    }
    let keeps_directories = match program {
        "rsync" => call.has("-R|--relative"),
        _ => call.has("--parents"),
    };
    if keeps_directories {
        let below = sources.iter().flat_map(|source| suffixes(&source.text));
        candidates.extend(below.map(|path| paths::join(target, &path)));
        // A directory brings what is in it, wherever its name begins.
        let trees = sources.iter().map(|source| source.text.clone()).collect::<Vec<_>>();
        trees.iter().for_each(|tree| note(walk, ArrivalSource::Tree, tree, target));
    }
    if !may_be_directory(target, sources.len(), into.is_some()) {
        return candidates;
    }
    for source in sources {
        let text = source.text.trim_end_matches('/');
        let name = text.rsplit('/').next().unwrap_or_default();
        let all_of_it = matches!(name, "." | "..") || program == "rsync" && text != source.text;
        if source.glob || name.contains(['*', '?', '[']) {
            note(walk, ArrivalSource::Glob, &source.text, target);
        } else if all_of_it || name.chars().eq([UNKNOWN]) {
            note(walk, ArrivalSource::Tree, text, target);
        } else {
            candidates.push(paths::join(target, name));
        }
    }
    candidates
}

/// The directory that a link of this name lies in.
fn directory_of(link: &str) -> &str {
    link.trim_end_matches('/').rsplit_once('/').map_or(".", |(directory, _)| directory)
}

/// Whether files are put into a target under their own names, as far as the text says.
fn may_be_directory(target: &str, sources: usize, is_said: bool) -> bool {
    let name = target.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let has_ending = name.trim_start_matches('.').contains('.');
    is_said || sources > 1 || target.ends_with('/') || matches!(name, "." | "..") || !has_ending
}

/// `gunzip AGENTS.md.gz` writes `AGENTS.md`.
fn unpacked_names(args: &[Arg]) -> Vec<String> {
    let stem = |arg: &Arg| Some(arg.text.rsplit_once('.')?.0.to_owned());
    args.iter().filter(|arg| !arg.text.starts_with('-')).filter_map(stem).collect()
}

/// Without another name a file is called as in its address.
fn downloaded_name(walk: &mut Walk<'_>, program: &str, args: &[Arg]) -> Vec<String> {
    let values = "-P --directory-prefix --output-dir -d --dir -o --output -O --output-document -D --dump-header \
        -c --cookie-jar";
    let values = if program == "curl" { values.replace(" -O ", " ") } else { values.to_owned() };
    let call = Invocation::new(program, args, &values, Style::Bundled);
    let into = call.values("-P|--directory-prefix|--output-dir|-d|--dir").next().unwrap_or(".");
    // The server or a file names what is fetched.
    let is_unnamed = match program {
        "curl" => call.has("-J|--remote-header-name"),
        "aria2c" => call.has("-i|--input-file"),
        _ => {
            let is_flat = args.iter().any(|arg| {
                matches!(&*arg.text, "-nd" | "-nH" | "--no-directories" | "--no-host-directories")
            });
            let is_recursive = call.has("-r|--recursive|-m|--mirror");
            call.has("-i|--input-file|--content-disposition") || is_recursive && is_flat
        }
    };
    if is_unnamed {
        unnamed::note_unknown_names(walk, into);
    }
    let name = |arg: &&Arg| {
        let path = arg.text.split(['?', '#']).next().unwrap_or_default();
        let name = path.rsplit('/').next().unwrap_or_default();
        paths::join(into, name)
    };
    // `curl` prints what it fetches unless it is asked to keep the name; the others keep it unless they get another.
    let keeps_name = match program {
        "curl" => call.has("-O|--remote-name|--remote-name-all|-J|--remote-header-name"),
        _ => !call.has("-O|--output-document|-o|--out"),
    };
    let named = call.operands.iter().filter(|_| keeps_name).map(name);
    named.chain([into.to_owned()]).collect()
}

/// The members that are named, and the directory; the rest is in the archive or the patch.
fn unpacked(walk: &mut Walk<'_>, program: &str, args: &[Arg]) -> Vec<String> {
    let call = Invocation::new(program, args, UNPACK_VALUES, Style::Bundled);
    let letters = args.first().map(|arg| &*arg.text).filter(|text| !text.starts_with('-'));
    let is_tar = matches!(program, "tar" | "gtar" | "bsdtar");
    let unpacks = match program {
        "patch" | "gpatch" => !call.has("--dry-run"),
        _ if is_tar => call.has("-x|--extract|--get") || letters.is_some_and(|l| l.contains('x')),
        "unzip" => !call.has("-l|-t|-Z|-p|-v"),
        "cpio" => call.has("-i|--extract|-p|--pass-through"),
        _ => letters.is_some_and(|letters| letters.starts_with(['x', 'e'])),
    };
    if !unpacks {
        // An archive that is written is judged by its own name.
        return call.values("-f|--file").map(str::to_owned).collect();
    }
    let passes_through = program == "cpio" && call.has("-p|--pass-through");
    let directory = match passes_through {
        true => call.operands.last().map_or(".", |arg| &*arg.text),
        false => call.values("-C|--directory|-d|--one-top-level").next().unwrap_or("."),
    };
    let source = match program {
        "patch" | "gpatch" => ArrivalSource::Patch,
        _ => ArrivalSource::Archive,
    };
    let file = match program {
        "patch" | "gpatch" => call.values("-i|--input").next().or_else(|| call.word(1)),
        "unzip" => call.word(0),
        "cpio" => None,
        _ if is_tar => {
            let old_style = letters.filter(|letters| letters.contains('f'));
            call.values("-f|--file").next().or_else(|| old_style.and(call.word(1)))
        }
        _ => call.word(1),
    };
    note_archive(walk, source, file.filter(|file| *file != "-"), directory);
    if call.has("--transform|--xform") || program == "bsdtar" && call.has("-s") {
        unnamed::note_unknown_names(walk, directory);
    }
    let members = call.operands.iter().map(|arg| paths::join(directory, &arg.text));
    members.chain([directory.to_owned()]).collect()
}

/// An archive or a patch: a file, or the command's input.
fn note_archive(
    walk: &mut Walk<'_>,
    source: fn(String) -> ArrivalSource,
    file: Option<&str>,
    directory: &str,
) {
    let input = walk.state.input.clone();
    match (file, input) {
        (Some(file), _) => note(walk, source, file, directory),
        (None, Input::File(file)) => note(walk, source, &file, directory),
        (None, Input::Text(text)) => {
            let paths = walk.paths();
            let names = patched_names(&text).filter_map(|name| {
                let path = paths::join(directory, &name);
                paths.judge(&Arg::literal(path), Use::Write)
            });
            if let Some(found) =
                names.filter(|found| found.class == Class::Production).reduce(worse)
            {
                walk.findings.note(found, &[Arg::literal("a patch in the text")]);
            }
        }
        (None, Input::Pipe) => note(walk, |_| ArrivalSource::Pipe, ".", directory),
        (None, Input::Inherited) => {}
    }
}

/// The files that a patch names, with and without each of the directories that `-p` takes away.
pub fn patched_names(text: &str) -> impl Iterator<Item = String> + '_ {
    let marks =
        ["+++ ", "--- ", "*** ", "rename to ", "copy to ", "rename from ", "Index: ", "Prereq: "];
    let names = text.lines().flat_map(move |line| match line.strip_prefix("diff --git ") {
        // A binary patch and an empty file have no other line with a name. Where one name ends and the next begins is
        // not said, so each word may begin one.
        Some(names) => names.split([' ', '"']).map(str::trim_end).collect(),
        None => {
            let name = marks.iter().find_map(|mark| line.strip_prefix(mark)).map(str::trim_end);
            name.into_iter().collect::<Vec<_>>()
        }
    });
    names.flat_map(|name| {
        let name = name.split('\t').next().unwrap_or_default().trim_matches('"');
        suffixes(&unquoted(name))
    })
}

/// A path, and what is left of it without its first directories.
fn suffixes(path: &str) -> Vec<String> {
    let below = path.match_indices('/').map(|(at, _)| &path[at + 1..]);
    std::iter::once(path).chain(below).filter(|rest| !rest.is_empty()).map(str::to_owned).collect()
}

/// A name in a patch without the escapes that git writes: `\101GENTS.md`.
fn unquoted(name: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), name.as_bytes());
    while let Some((&first, after)) = rest.split_first() {
        let octal = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let octal = octal.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        let (byte, after) = match (first, octal, after.split_first()) {
            (b'\\', Some(byte), _) => (byte, &after[3..]),
            (b'\\', None, Some((&escaped, after))) => (escaped, after),
            _ => (first, after),
        };
        bytes.push(byte);
        rest = after;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Notes what arrives, from each directory the command may be in. Where that is only known when it runs, it may be the
/// one with the agent's rules.
fn note(walk: &mut Walk<'_>, source: impl Fn(String) -> ArrivalSource, path: &str, into: &str) {
    let (from, to) = (walk.paths().resolve(path), walk.paths().resolve(into));
    let known = |path: Option<String>| path.filter(|path| !path.contains(UNKNOWN));
    for (from, into) in from.into_iter().zip(to) {
        let is_git = matches!(source(String::new()), ArrivalSource::Git(_));
        let source = match known(from) {
            Some(from) => source(from),
            None if is_git => source(String::new()),
            None => ArrivalSource::Computed,
        };
        let into = known(into).unwrap_or_else(|| walk.context.workspace.clone());
        walk.findings.arrivals.insert(Arrival { source, into });
    }
}
