//! Where skills are looked for.

use std::path::{Path, PathBuf};

use crate::skill::Scope;

/// Where an image brings its own.
pub const IMAGE_DIRECTORY: &str = "/skills";

/// Beside other agents' own directories, so that skills written for them serve here too.
const FAMILIES: [&str; 3] = [".claude", ".agents", ".windlass"];

/// Every directory that may hold skills, the one that wins last (C-26, AX-016, AX-017, MS-151).
pub fn places(home: Option<&Path>, project: &Path) -> Vec<(PathBuf, Scope)> {
    let of = |base: &Path, scope: Scope| {
        let base = base.to_owned();
        FAMILIES.map(|family| (base.join(family).join("skills"), scope))
    };
    let mut places = vec![(PathBuf::from(IMAGE_DIRECTORY), Scope::Builtin)];
    places.extend(home.into_iter().flat_map(|home| of(home, Scope::User)));
    // In the home directory itself the same directories would count twice.
    if home != Some(project) {
        places.extend(of(project, Scope::Project));
    }
    places
}
