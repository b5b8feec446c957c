//! Keeps this process's memory, which holds keys, from core files and from other processes of the same user.

use rustix::process::{DumpableBehavior, Resource, Rlimit};

/// Set, it leaves all of this off: measurements and debuggers look into processes.
const SWITCH: &str = "WINDLASS_DUMPABLE";

/// Forbids core files and looks into this process. A kernel that refuses leaves things as they were.
pub fn hide() {
    if std::env::var_os(SWITCH).is_some_and(|value| !value.is_empty()) {
        return;
    }
    let maximum = rustix::process::getrlimit(Resource::Core).maximum;
    let _ = rustix::process::setrlimit(Resource::Core, Rlimit { current: Some(0), maximum });
    let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
}
