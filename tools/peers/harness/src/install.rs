//! Installs the measured systems into the work folder, in their pinned versions, and returns these.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::Failed;
use crate::machine;
use crate::program::Program;
use crate::server::in_path;
use crate::systems::{Front, Got, System};

/// The folders that the harness uses.
pub struct Folders {
    /// The folder of this workspace: `tools/peers`.
    pub home: PathBuf,
    /// The folder for everything that is installed: `tools/peers/.work`.
    pub work: PathBuf,
    /// The folder of cargo's builds.
    pub target: PathBuf,
}

/// The installed parts, so that nothing is installed twice.
#[derive(Default)]
pub struct Installed {
    node: Option<Result<(), String>>,
    python: HashMap<&'static str, Result<(), String>>,
    server: Option<Result<PathBuf, String>>,
    cargo: HashMap<&'static str, Result<(), String>>,
}

/// A system that is ready to be measured.
pub struct Ready {
    /// The way to call it.
    pub program: Program,
    pub version: String,
}

impl Installed {
    /// Makes a system ready, or reports why that is impossible.
    pub fn install(&mut self, folders: &Folders, system: &System) -> Result<Ready, Failed> {
        let way = system.way.to_owned();
        let options = if way.is_empty() { Vec::new() } else { vec!["--way".to_owned(), way] };
        match system.got {
            Got::Node { name } => {
                let node = folders.work.join("node");
                let done = self.node.get_or_insert_with(|| {
                    node_packages(folders, &node).map_err(|why| why.to_string())
                });
                done.clone()?;
                if name == "tenure" {
                    tenure_package(folders, &node)?;
                }
                let front = self.front(folders, system)?;
                let package = node.join("node_modules").join(name).join("package.json");
                let package: Value = serde_json::from_slice(&fs::read(package)?)?;
                let version = package["version"].as_str().unwrap_or("unknown").to_owned();
                let command = vec!["node".into(), format!("{name}.mjs").into()];
                let program = Program { command, folder: node, options, front };
                Ok(Ready { program, version })
            }
            Got::Python { name, package } => {
                let done = self.python.entry(name).or_insert_with(|| {
                    python_packages(folders, name).map_err(|why| why.to_string())
                });
                done.clone()?;
                let venv = folders.work.join("python").join(name);
                let mut command = Vec::new();
                if package.is_empty() {
                    let bin = self.server(folders)?;
                    command.push("env".into());
                    command.push(format!("TENURE_BIN={}", bin.display()).into());
                }
                command.push(venv.join("bin/python").into());
                // Its caches would otherwise lie in the tree.
                command.push("-B".into());
                let home = folders.home.join("python");
                command.push(home.join(name).join("program.py").into());
                let program = Program { command, folder: home, options, front: None };
                Ok(Ready { program, version: required(folders, name, package)? })
            }
            Got::Cargo { package, of } => {
                let done = self
                    .cargo
                    .entry(package)
                    .or_insert_with(|| build(folders, package).map_err(|why| why.to_string()));
                done.clone()?;
                let command = vec![folders.target.join("release").join(package).into()];
                let front = self.front(folders, system)?;
                let folder = folders.work.clone();
                let program = Program { command, folder, options, front };
                let version = match &program.front {
                    // `beanstalkd 1.12`
                    Some((Front::Beanstalkd, executable)) => {
                        machine::first_line(executable, &["-v"])
                            .and_then(|line| Some(line.split_once(' ')?.1.to_owned()))
                            .unwrap_or_default()
                    }
                    Some((Front::TenureOnRedis | Front::TenureOnFolder, _)) | None => {
                        locked(folders, of)?
                    }
                };
                Ok(Ready { program, version })
            }
        }
    }

    /// The server that a system's program connects to, and its executable.
    fn front(
        &mut self,
        folders: &Folders,
        system: &System,
    ) -> Result<Option<(Front, PathBuf)>, Failed> {
        let Some(front) = system.front else { return Ok(None) };
        let executable = match front {
            Front::TenureOnRedis | Front::TenureOnFolder => self.server(folders)?,
            Front::Beanstalkd => {
                in_path("beanstalkd").ok_or("beanstalkd is not in PATH: install beanstalkd")?
            }
        };
        Ok(Some((front, executable)))
    }

    /// The `tenure` that runs the server of HTTP programs.
    fn server(&mut self, folders: &Folders) -> Result<PathBuf, String> {
        let server = self
            .server
            .get_or_insert_with(|| tenure_server(folders).map_err(|why| why.to_string()));
        server.clone()
    }
}

fn node_packages(folders: &Folders, node: &Path) -> Result<(), Failed> {
    for tool in ["node", "npm"] {
        in_path(tool).ok_or(format!("{tool} is not in PATH: install Node.js 20 or later"))?;
    }
    fs::create_dir_all(node)?;
    let home = folders.home.join("node");
    let lock = fs::read(home.join("package-lock.json"))?;
    let old = fs::read(node.join("installed-lock.json")).ok();
    for entry in fs::read_dir(&home)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            fs::copy(entry.path(), node.join(entry.file_name()))?;
        }
    }
    if old.as_deref() == Some(&lock) && node.join("node_modules").is_dir() {
        return Ok(());
    }
    eprintln!("installing the Node packages of node/package-lock.json");
    // The versions of the lock. Not `npm ci`: it refuses a lock that lacks an optional package of another platform, and
    // registries lack some of them.
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--loglevel=error"]).current_dir(node);
    quietly(npm, "npm install")?;
    fs::write(node.join("installed-lock.json"), lock)?;
    Ok(())
}

/// Builds our package for Node in a copy, and links it. Each time: its version does not identify its content.
fn tenure_package(folders: &Folders, node: &Path) -> Result<(), Failed> {
    eprintln!("building the package of clients/typescript");
    let ours = folders.home.join("../../clients/typescript");
    let copy = folders.work.join("typescript");
    let _ = fs::remove_dir_all(copy.join("src"));
    fs::create_dir_all(&copy)?;
    let parts = ["src", "scripts", "package.json", "package-lock.json", "tsconfig.json"];
    let mut cp = Command::new("cp");
    cp.arg("-r").args(parts.map(|part| ours.join(part))).arg(&copy);
    quietly(cp, "cp")?;
    for words in [&["ci", "--no-audit", "--no-fund", "--loglevel=error"][..], &["run", "build"]] {
        let mut npm = Command::new("npm");
        npm.args(words).current_dir(&copy);
        quietly(npm, "npm")?;
    }
    let link = node.join("node_modules").join("tenure");
    let _ = fs::remove_file(&link);
    std::os::unix::fs::symlink(copy, link)?;
    Ok(())
}

/// Makes a virtual environment for a program, with its requirements.
fn python_packages(folders: &Folders, name: &str) -> Result<(), Failed> {
    in_path("python3").ok_or("python3 is not in PATH: install Python 3.9 or later with venv")?;
    let venv = folders.work.join("python").join(name);
    let requirements = folders.home.join("python").join(name).join("requirements.txt");
    let wanted = fs::read(&requirements)?;
    let note = venv.join("installed.txt");
    // Our own package is installed again each time: its version does not identify its content.
    let ours = folders.home.join("../../clients/python");
    if name != "tenure" && fs::read(&note).ok().as_deref() == Some(&wanted) {
        return Ok(());
    }
    eprintln!("installing the Python packages of python/{name}/requirements.txt");
    if !venv.join("bin/python").exists() {
        let mut python = Command::new("python3");
        python.args(["-m", "venv"]).arg(&venv);
        quietly(python, "python3 -m venv")?;
    }
    let mut pip = Command::new(venv.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    if name == "tenure" {
        pip.arg("--force-reinstall").arg(ours);
    } else {
        pip.arg("-r").arg(requirements);
    }
    quietly(pip, "pip install")?;
    fs::write(note, wanted)?;
    Ok(())
}

/// The server for our programs that use HTTP: `TENURE_BIN`, or a release build of this tree.
fn tenure_server(folders: &Folders) -> Result<PathBuf, Failed> {
    if let Some(named) = std::env::var_os("TENURE_BIN") {
        return Ok(named.into());
    }
    eprintln!("building tenure");
    let target = folders.target.join("tenure");
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--release", "--locked", "--quiet", "-p", "tenure-cli"]);
    cargo.arg("--target-dir").arg(&target).current_dir(folders.home.join("../.."));
    quietly(cargo, "cargo build")?;
    Ok(target.join("release/tenure"))
}

/// A package's version in the requirements of a program.
fn required(folders: &Folders, name: &str, package: &str) -> Result<String, Failed> {
    let path = folders.home.join("python").join(name).join("requirements.txt");
    let text = fs::read_to_string(path)?;
    let line = text.lines().find_map(|line| line.strip_prefix(package)?.strip_prefix("=="));
    Ok(line.unwrap_or_default().to_owned())
}

fn build(folders: &Folders, package: &str) -> Result<(), Failed> {
    eprintln!("building {package}");
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--release", "--locked", "--quiet", "-p", package]);
    cargo.arg("--target-dir").arg(&folders.target).current_dir(&folders.home);
    quietly(cargo, "cargo build")
}

/// Runs a command; its output is shown only if it fails.
fn quietly(mut command: Command, label: &str) -> Result<(), Failed> {
    let output = command.stdin(Stdio::null()).output().map_err(|why| format!("{label}: {why}"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    // Cargo's error is on its first line; npm starts with a code, and its error follows on the next lines.
    let said: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("error") || line.starts_with("npm error"))
        .map(|line| line.trim_start_matches("npm error").trim())
        .filter(|line| !line.is_empty())
        .take(2)
        .collect();
    let why = if said.is_empty() { text.trim().to_owned() } else { said.join("; ") };
    Err(format!("{label} failed: {why}").into())
}

/// A crate's version in the lock; our own crates have no meaningful version.
fn locked(folders: &Folders, name: &str) -> Result<String, Failed> {
    let lock = fs::read_to_string(folders.home.join("Cargo.lock"))?;
    let wanted = format!("name = \"{name}\"");
    let mut lines = lock.lines().skip_while(|line| *line != wanted);
    let version = lines.nth(1).and_then(|line| line.split('"').nth(1));
    Ok(match version {
        Some("0.0.0") => String::new(),
        version => version.unwrap_or("unknown").to_owned(),
    })
}
