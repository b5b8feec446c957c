//! What git says that a run has changed.

use std::path::Path;

use windlass_workflow::changes;

use crate::repository::{Repository, by_hand, write};

/// The lines of all files are in memory at once: a log of hundreds of megabytes would fill it several times.
#[test]
fn the_lines_of_a_large_file_are_not_counted() {
    let repository = Repository::new();
    let tree = repository.worktree("one");
    let path = Path::new(&tree.path);
    write(path, "a.txt", "other\n");
    write(path, "large.txt", &"0123456789abcde\n".repeat((1 << 20) / 16 + 1));
    by_hand(path, "git add -A && git commit -qm work");
    let found = changes::between(&repository.git(), &tree.base, &tree.branch).unwrap();
    let found: Vec<_> = found.iter().map(|one| (one.path.as_str(), one.lines)).collect();
    assert_eq!(found, [("a.txt", Some((1, 3))), ("large.txt", None)]);
}
