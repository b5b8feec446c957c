//! Commands with the class and risk they must get: harm in disguise and harmless look-alikes.

use windlass_core::policy::{Class, Risk};
use windlass_shell::{Context, analyze};

/// One line of a corpus file.
pub struct Entry {
    pub class: Class,
    pub risk: Risk,
    pub command: String,
}

/// The commands that the properties are tried on, each in many forms.
pub fn entries() -> Vec<Entry> {
    read(&[
        include_str!("corpus/disguised.txt"),
        include_str!("corpus/families.txt"),
        include_str!("corpus/harmless.txt"),
        include_str!("corpus/everyday.txt"),
    ])
}

fn read(files: &[&str]) -> Vec<Entry> {
    let lines = files.iter().flat_map(|file| file.lines());
    lines.filter(|line| !line.is_empty() && !line.starts_with('#')).map(entry).collect()
}

fn entry(line: &str) -> Entry {
    let mut parts = line.splitn(3, ' ');
    let mut part = || parts.next().expect("three columns");
    let class = part().replace("local", "local command");
    Entry {
        class: class.parse().expect("a class"),
        risk: part().parse().expect("a risk"),
        command: part().replace('⏎', "\n"),
    }
}

pub fn context() -> Context {
    Context::new("/workspace", "/home/user")
}

/// ES-250…253, ES-258, ES-262, ES-263
#[test]
fn every_command_of_the_corpus_has_its_class_and_risk() {
    let context = context();
    let mut entries = entries();
    entries.extend(read(&[include_str!("corpus/variants.txt")]));
    let wrong: Vec<String> = entries
        .iter()
        .filter_map(|entry| {
            let found = analyze(&entry.command, &context).assessment;
            let right = (found.class, found.risk) == (entry.class, entry.risk);
            (!right).then(|| {
                let Entry { class, risk, command } = entry;
                format!(
                    "{command}\n    is {} {} ({})\n    not {class} {risk}",
                    found.class, found.risk, found.reason
                )
            })
        })
        .collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), entries.len(), wrong.join("\n"));
    assert!(entries.len() >= 2000, "only {} commands", entries.len());
}
