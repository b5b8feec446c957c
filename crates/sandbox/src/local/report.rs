//! What people read about the isolation of a local sandbox.

use windlass_helper::protocol::Ready;

use super::Local;
use crate::network::Network;

impl Local {
    /// Completes the report once the helper has said what it could arrange.
    pub(super) fn describe(&mut self, ready: &Ready, namespaces_refused: Option<&str>) {
        let report = &mut self.report;
        let mut fact = |text: &str| report.facts.push(text.to_owned());
        match namespaces_refused {
            None => {
                fact("commands run in their own user, process, mount and ipc namespaces");
                fact("the system is read-only, the home directory is empty except for toolchains");
                fact(match self.config.network {
                    Network::Open => {
                        "sockets of other processes are hidden if they are there before the first command"
                    }
                    Network::Restricted(_) | Network::None => {
                        "sockets of other processes are hidden; one that appears while a command runs is hidden from the next"
                    }
                });
            }
            Some(_) => {
                fact("files are guarded by Landlock; commands see the real root and its processes");
                report.workspace = self.config.workspace.clone();
                report.has_own_sockets = false;
            }
        }
        if ready.landlock > 0 {
            report.facts.push(format!("Landlock version {} is enforced", ready.landlock));
        }
        if ready.filtered {
            report.facts.push("system calls are filtered".to_owned());
        }
        report.facts.push(match &self.config.network {
            Network::Restricted(_) => "the network is reached through windlass's proxy only".into(),
            Network::None => "there is no network".to_owned(),
            Network::Open => "the network is the host's".to_owned(),
        });
        let limits = &self.config.limits;
        let mebibytes = limits.memory_bytes >> 20;
        if ready.memory_bounded {
            report.memory_bytes = Some(limits.memory_bytes);
            report.facts.push(format!("the task's memory is bounded to {mebibytes} MiB"));
        } else {
            report.warnings.push(format!(
                "no control group is available: memory is bounded per process only ({mebibytes} MiB), \
                 and memory files (`memfd_create`) are refused"
            ));
        }
        if ready.processes_bounded {
            report.facts.push(format!("at most {} processes run at once", limits.processes));
        }
        if ready.runs_as_root {
            let hidden = match namespaces_refused {
                None => "are hidden in /etc, /opt and /usr/local only",
                Some(_) => "can be read in the system's directories",
            };
            report.warnings.push(format!(
                "the owner of the workspace is root, and here commands must run as root, without rights: files \
                 that only root may read {hidden}"
            ));
        }
        if let Some(reason) = namespaces_refused {
            report.warnings.push(format!(
                "weaker isolation: namespaces are not available ({reason}); Landlock alone guards files"
            ));
            report.warnings.push(
                "Landlock alone: commands see the names and arguments of this machine's processes, and can change the \
                 priority and the processors of this user's"
                    .to_owned(),
            );
            report.warnings.push(
                "Landlock alone: commands see whether files outside exist, how large they are and when they change, \
                 not what they hold"
                    .to_owned(),
            );
            if ready.landlock < 6 {
                report.warnings.push(format!(
                    "Landlock version {} alone: commands can signal this user's processes",
                    ready.landlock
                ));
            }
            report.warnings.push(
                "Landlock alone: shared memory (`/dev/shm`, System V), local sockets, listening sockets and \
                 changes of owners or attributes are refused, so programs that need them fail"
                    .to_owned(),
            );
            if matches!(self.config.network, Network::Restricted(_)) && ready.landlock < 4 {
                report.warnings.push("Landlock is too old for the proxy: no network".to_owned());
            }
        } else if ready.landlock == 0 {
            report.warnings.push("Landlock is not available; mounts alone guard files".to_owned());
        }
    }
}
