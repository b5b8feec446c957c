//! Where container engines are found: the environment, docker's contexts, the usual sockets.

use std::fs;
use std::path::Path;

use windlass_core::hash::sha256;

/// Settings of the docker program are a page of JSON.
const MAX_SETTINGS_BYTES: u64 = 1 << 20;

/// Where docker is unless something says otherwise.
pub(super) const DEFAULT: &str = "unix:///var/run/docker.sock";

/// What to try, in order. What a person chose, by variable or by context, is tried alone.
pub(super) fn candidates(environment: &[(String, String)], home: &Path) -> Vec<String> {
    let variable = |name: &str| {
        let found = environment.iter().find(|(known, value)| known == name && !value.is_empty());
        found.map(|(_, value)| value.clone())
    };
    if let Some(host) = variable("DOCKER_HOST").or_else(|| variable("CONTAINER_HOST")) {
        return vec![host];
    }
    let settings =
        variable("DOCKER_CONFIG").map_or_else(|| home.join(".docker"), std::path::PathBuf::from);
    if let Some(host) = of_context(&settings, variable("DOCKER_CONTEXT")) {
        return vec![host];
    }
    let mut hosts = vec![DEFAULT.to_owned()];
    if let Some(run) = variable("XDG_RUNTIME_DIR") {
        hosts.push(format!("unix://{run}/docker.sock"));
    }
    for socket in [".docker/run/docker.sock", ".docker/desktop/docker.sock"] {
        hosts.push(format!("unix://{}", home.join(socket).display()));
    }
    if let Some(run) = variable("XDG_RUNTIME_DIR") {
        hosts.push(format!("unix://{run}/podman/podman.sock"));
    }
    hosts.push("unix:///run/podman/podman.sock".to_owned());
    // One that is not there needs no trying, and the first is what an error names.
    let there = |host: &String| {
        host == DEFAULT || host.strip_prefix("unix://").is_some_and(|path| Path::new(path).exists())
    };
    hosts.into_iter().filter(there).collect()
}

/// The address in docker's current context; `None` for the default one.
fn of_context(settings: &Path, named: Option<String>) -> Option<String> {
    let json = |path: &Path| -> Option<serde_json::Value> {
        let found = fs::metadata(path).ok()?;
        let is_read = found.is_file() && found.len() <= MAX_SETTINGS_BYTES;
        serde_json::from_str(&is_read.then(|| fs::read_to_string(path))?.ok()?).ok()
    };
    let name = match named {
        Some(name) => name,
        None => json(&settings.join("config.json"))?["currentContext"].as_str()?.to_owned(),
    };
    if name == "default" {
        return None;
    }
    // Docker keeps each context in a directory named by the hash of its name.
    let hash = sha256(name);
    let meta = json(&settings.join("contexts/meta").join(hash).join("meta.json"))?;
    Some(meta["Endpoints"]["docker"]["Host"].as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_variable_wins_over_everything() {
        let home = tempfile::tempdir().unwrap();
        let environment = env(&[("DOCKER_HOST", "tcp://a:1"), ("XDG_RUNTIME_DIR", "/run/user/1")]);
        assert_eq!(candidates(&environment, home.path()), ["tcp://a:1"]);
        assert_eq!(candidates(&env(&[("DOCKER_HOST", "")]), home.path())[0], DEFAULT);
    }

    #[test]
    fn the_current_context_names_the_engine_or_the_usual_socket() {
        let home = tempfile::tempdir().unwrap();
        let docker = home.path().join(".docker");
        let hash = "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b";
        let meta = docker.join("contexts/meta").join(hash);
        fs::create_dir_all(&meta).unwrap();
        let text = r#"{"Name":"1","Endpoints":{"docker":{"Host":"unix:///somewhere.sock"}}}"#;
        fs::write(meta.join("meta.json"), text).unwrap();
        fs::write(docker.join("config.json"), r#"{"currentContext":"1"}"#).unwrap();
        assert_eq!(candidates(&[], home.path()), ["unix:///somewhere.sock"]);
        let other = env(&[("DOCKER_CONTEXT", "default")]);
        assert_eq!(candidates(&other, home.path())[0], DEFAULT);
        fs::write(docker.join("config.json"), "{").unwrap();
        assert_eq!(candidates(&[], home.path())[0], DEFAULT);
    }

    #[test]
    fn sockets_of_an_ordinary_users_engine_are_tried_where_they_exist() {
        let home = tempfile::tempdir().unwrap();
        let run = home.path().join("run");
        fs::create_dir_all(run.join("podman")).unwrap();
        fs::write(run.join("podman/podman.sock"), "").unwrap();
        let environment = env(&[("XDG_RUNTIME_DIR", run.to_str().unwrap())]);
        let expected = format!("unix://{}/podman/podman.sock", run.display());
        assert!(candidates(&environment, home.path()).contains(&expected));
        assert!(
            !candidates(&environment, home.path())
                .iter()
                .any(|host| host.ends_with("run/docker.sock") && host != DEFAULT)
        );
    }
}
