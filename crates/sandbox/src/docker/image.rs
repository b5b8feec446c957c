//! Images: built from a description, and looked at.

use std::collections::HashMap;

use bollard::query_parameters::BuildImageOptions;
use futures_util::StreamExt as _;

use super::engine::Engine;
use crate::Error;

/// Our own description of an image that agents can work in.
pub const DOCKERFILE: &str = include_str!("../../../../docker/Dockerfile");

/// What to build.
#[derive(Clone, Debug)]
pub struct Build {
    /// The name it gets.
    pub image: String,
    /// The description, [`DOCKERFILE`] for ours.
    pub dockerfile: String,
    /// Values for its arguments.
    pub arguments: Vec<(String, String)>,
}

impl Engine {
    /// Builds an image; `on_line` gets what the engine prints meanwhile.
    pub async fn build(&self, build: Build, mut on_line: impl FnMut(&str)) -> Result<(), Error> {
        let options = BuildImageOptions {
            t: Some(build.image),
            dockerfile: "Dockerfile".to_owned(),
            rm: true,
            forcerm: true,
            buildargs: Some(build.arguments.into_iter().collect::<HashMap<_, _>>()),
            ..Default::default()
        };
        let body = bollard::body_full(archive("Dockerfile", build.dockerfile.as_bytes()).into());
        let mut output = std::pin::pin!(self.api.build_image(options, None, Some(body)));
        while let Some(item) = output.next().await {
            let item = item.map_err(|error| self.engine_error("build the image", error))?;
            if let Some(error) = item.error_detail {
                let source = std::io::Error::other(error.message.unwrap_or_default());
                return Err(Error::Engine { doing: "build the image".to_owned(), source });
            }
            let texts = item.stream.into_iter().chain(item.status);
            for line in texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()) {
                on_line(&line);
            }
        }
        Ok(())
    }
}

/// A tar archive of one file, which is what an engine takes.
fn archive(name: &str, content: &[u8]) -> Vec<u8> {
    const BLOCK: usize = 512;
    let mut header = [0; BLOCK];
    let mut put = |at: usize, text: &[u8]| header[at..at + text.len()].copy_from_slice(text);
    put(0, name.as_bytes());
    put(100, b"0000644\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{:011o}\0", content.len()).as_bytes());
    put(136, b"00000000000\0");
    // The sum is taken over the header with blanks in its own place.
    put(148, b"        ");
    put(156, b"0");
    put(257, b"ustar\x0000");
    let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let mut archive = header.to_vec();
    archive.extend_from_slice(content);
    archive.resize(archive.len().next_multiple_of(BLOCK) + 2 * BLOCK, 0);
    archive
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_of_one_file_is_read_by_tar() {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("a.tar"), archive("Dockerfile", b"FROM x\n")).unwrap();
        let run = std::process::Command::new("tar")
            .args(["-xf", "a.tar"])
            .current_dir(place.path())
            .status();
        assert!(run.unwrap().success());
        let text = std::fs::read_to_string(place.path().join("Dockerfile")).unwrap();
        assert_eq!(text, "FROM x\n");
    }
}
