//! Builds the files of a release: the program with what belongs to it, in an archive with a checksum.

mod licences;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::repository::{self, Repository};
use crate::steps::Steps;

/// Maximum size of the program: a larger one has a dependency that it does not need.
const BYTES_MAX: u64 = 25_000_000;

/// Shells with the names of their scripts.
const SHELLS: [(&str, &str); 3] =
    [("bash", "rewheel.bash"), ("fish", "rewheel.fish"), ("zsh", "_rewheel")];

/// Files of the repository that belong to a release.
const FILES: [&str; 5] =
    ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT", "rewheel.example.toml"];

/// Folders of the repository that belong to a release.
const FOLDERS: [&str; 3] = ["packaging/systemd", "packaging/prometheus", "packaging/grafana"];

pub(crate) fn run(repository: &Repository, steps: &mut Steps) -> Result<()> {
    let output = repository.target_dir().join("dist");
    let program = output.join("rewheel");
    steps.run("build", || {
        let mut build = repository.cargo("build --profile dist --locked -p rewheel-cli");
        repository::run(build.env("REWHEEL_COMMIT", commit(repository)?))
    })?;
    steps.run("size", || {
        let bytes = fs::metadata(&program).context("there is no program")?.len();
        println!("{} has {bytes} bytes, at most {BYTES_MAX}", program.display());
        ensure!(bytes <= BYTES_MAX, "the program is too large");
        Ok(())
    })?;
    let mut name = String::new();
    steps.run("files", || {
        name = archive_name(repository, &program)?;
        let folder = output.join(&name);
        if folder.exists() {
            fs::remove_dir_all(&folder).context("cannot remove an earlier release")?;
        }
        fill(repository, &program, &folder)
    })?;
    steps.run("archive", || pack(repository, &output, &name))
}

/// Returns the commit, marked if the checkout has changes.
fn commit(repository: &Repository) -> Result<String> {
    let hash =
        repository::read(repository.program("git").args(["rev-parse", "--short=12", "HEAD"]))?;
    let mut status = repository.program("git");
    let changes = repository::read(status.args(["status", "--porcelain", "--untracked-files=no"]))?;
    let mark = if changes.trim().is_empty() { "" } else { "-changed" };
    Ok(format!("{}{mark}", hash.trim()))
}

/// Returns a name with the version and the platform, such as `rewheel-0.1.0-x86_64-linux`.
fn archive_name(repository: &Repository, program: &Path) -> Result<String> {
    let said = repository::read(repository.program(program).arg("-V"))?;
    let version = said.split_whitespace().nth(1).context("the program has no version")?;
    Ok(format!("rewheel-{version}-{}-{}", std::env::consts::ARCH, std::env::consts::OS))
}

/// Copies and generates everything into a folder.
fn fill(repository: &Repository, program: &Path, folder: &Path) -> Result<()> {
    let completions = folder.join("completions");
    fs::create_dir_all(&completions).context("cannot create the folder of the release")?;
    copy(program, &folder.join("rewheel"))?;
    for (shell, file) in SHELLS {
        let script = repository::read(repository.program(program).args(["completions", shell]))?;
        ensure!(script.contains("rewheel"), "the script for {shell} is empty");
        fs::write(completions.join(file), script).context("cannot write a completion script")?;
    }
    repository::run(repository.program(program).arg("man").arg(folder.join("man")))?;
    for file in FILES {
        copy(&repository.path(file), &folder.join(file))?;
    }
    for source in FOLDERS {
        let files = repository.files()?.into_iter().filter(|file| {
            Path::new(file).parent().is_some_and(|parent| parent == Path::new(source))
        });
        for file in files {
            let to = folder.join(&file);
            fs::create_dir_all(to.parent().unwrap_or(folder)).context("cannot create a folder")?;
            copy(&repository.path(&file), &to)?;
        }
    }
    let texts = licences::texts(repository)?;
    fs::write(folder.join("LICENSES-DEPENDENCIES.txt"), texts).context("cannot write the licences")
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    Ok(())
}

/// Packs the folder, with the same bytes for the same files, and writes the checksum.
fn pack(repository: &Repository, output: &Path, name: &str) -> Result<()> {
    let archive = format!("{name}.tar.gz");
    let mut time = repository.program("git");
    let time = repository::read(time.args(["log", "-1", "--format=@%ct"]))?;
    let mut tar = repository.program("tar");
    tar.current_dir(output)
        // The modes of the files depend on the umask of the user.
        .args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mode=u=rwX,go=rX"])
        .arg(format!("--mtime={}", time.trim()))
        .args(["-czf", &archive, name])
        // gzip stores the time otherwise.
        .env("GZIP", "-n");
    repository::run(&mut tar)?;
    let mut sum = repository.program("sha256sum");
    let sum = repository::read(sum.current_dir(output).arg(&archive))?;
    let file: PathBuf = output.join(format!("{archive}.sha256"));
    fs::write(&file, &sum).context("cannot write the checksum")?;
    print!("{sum}");
    Ok(())
}
