//! Files that say what an agent may do, where git would bring them from another commit.
//!
//! Git is asked before the command runs, in a directory of ours, so that it runs no program of the workspace. What it
//! cannot say beforehand (a pull, a name that the same command moves) counts as bringing such files.

use windlass_core::layout::WORKSPACE;
use windlass_core::policy::class::{Assessment, Class};
use windlass_core::policy::{Arrival, ArrivalSource, CommandAnalysis, GitSource, files};
use windlass_core::shown::shown_line;

use crate::workspace::{CommitReader, Workspace};

/// Adds what git would bring to what is known of a command.
pub(super) async fn add_to(analysis: &mut CommandAnalysis, workspace: &Workspace) {
    for arrival in analysis.arrivals.clone() {
        let Arrival { source: ArrivalSource::Git(source), into } = arrival else { continue };
        let reason = match look(workspace, &source, &into).await {
            Some(names) => match names.first() {
                Some(name) => {
                    let name = shown_line(name);
                    format!("lets git change `{name}`, which says what an agent may do")
                }
                None => continue,
            },
            None => format!(
                "lets git bring files that cannot be looked at beforehand, and some may say what an agent may do{}",
                advice(&source)
            ),
        };
        analysis.add(words(&source), Assessment::of(Class::Production, reason));
    }
}

/// How the same is done so that it can be looked at.
fn advice(source: &GitSource) -> &'static str {
    match source {
        GitSource::Unseen => {
            "; `git fetch` as one command and `git merge` as the next can be looked at"
        }
        GitSource::Commit(_)
        | GitSource::Merge(_)
        | GitSource::Base(_)
        | GitSource::Changes(_)
        | GitSource::Stash(_)
        | GitSource::Files { .. }
        | GitSource::Submodules
        | GitSource::History => "",
    }
}

fn words(source: &GitSource) -> String {
    let words = match source {
        GitSource::Commit(name) | GitSource::Merge(name) | GitSource::Base(name) => name.clone(),
        GitSource::Stash(name) => name.clone(),
        GitSource::Changes(names) => names.join(" "),
        GitSource::Files { commit, .. } => commit.as_deref().unwrap_or("the index").to_owned(),
        GitSource::Submodules => "submodules".to_owned(),
        GitSource::History => "an earlier commit".to_owned(),
        GitSource::Unseen => "commits".to_owned(),
    };
    shown_line(&words)
}

/// The files with rules that would change; `None` where nobody can say.
async fn look(workspace: &Workspace, source: &GitSource, into: &str) -> Option<Vec<String>> {
    let rules = workspace.rule_files();
    let is_obeyed = |directory: &str| {
        let below = |name| format!("{}/{name}", directory.trim_end_matches('/'));
        files::rule_names().any(|name| rules.includes(&below(name)))
    };
    let Some(mut reader) = CommitReader::open(workspace, into) else {
        // No repository yet, or none that can be read. It may be the one that the whole workspace is.
        return (!workspace.holds(WORKSPACE, into)).then(Vec::new);
    };
    let top = reader.top().to_owned();
    let landing = |name: &str| format!("{top}/{name}");
    let paths = if let GitSource::Files { paths, .. } = source { &paths[..] } else { &[] };
    let is_meant = |name: &str| {
        paths.is_empty() || paths.iter().any(|path| workspace.holds(path, &landing(name)))
    };
    match reader.changed_rules(source, &rules.linked()).await {
        Some(names) => {
            let names = names.into_iter();
            Some(names.filter(|name| rules.includes(&landing(name)) && is_meant(name)).collect())
        }
        None => (!is_obeyed(&top)).then(Vec::new),
    }
}
