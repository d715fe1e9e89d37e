//! A folder that becomes a copy: things as its rows, and how far it is in the same transaction.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use rusqlite::Connection;
use tenure_core::copy::{Cursor, Head, Item};
use tenure_core::names::Namespace;
use tenure_core::refusal::Refusal;
use tenure_core::sentences::CopyRefusal;
use tenure_machine::NO_JOB;
use tenure_machine::copied::{self, CopiedRows};
use tenure_machine::rows::Kind;
use tenure_seam::copy::{Begun, CopyError, Found, Step, Target};

use super::there::{FolderRows, row};
use super::{COPIED, CopyFolder, MARK, Marked, Part, fact, marked, put_fact, text_of};
use crate::file::commit::{self, Numbers};
use crate::file::writer::Writer;

/// What is there that a copy would meet. What is remembered of calls that are over is not.
fn something(conn: &Connection) -> rusqlite::Result<Option<String>> {
    let jobs: i64 = conn.query_row("SELECT count(*) FROM life", [], |row| row.get(0))?;
    let rows: i64 = conn.query_row(
        "SELECT count(*) FROM row WHERE kind NOT IN ('meta', 'request', 'stub')",
        [],
        |row| row.get(0),
    )?;
    let some = jobs + rows > 0;
    Ok(some
        .then(|| format!("it has {jobs} jobs and {rows} queues, limits, resources and the like")))
}

impl CopyFolder {
    fn not_this(&self) -> CopyError {
        Refusal::from(CopyRefusal::NotAPart { place: self.place() }).into()
    }

    /// How far the namespaces of this copy are.
    fn parts(
        &self,
        conn: &Connection,
        copy: &str,
    ) -> Result<Option<BTreeMap<Namespace, Part>>, CopyError> {
        match marked(conn).map_err(self.broken())? {
            Some(Ok(Marked::Target { copy: there, namespaces })) if there == copy => {
                Ok(Some(namespaces))
            }
            Some(_) => Err(self.not_this()),
            None => Ok(None),
        }
    }

    fn write(
        &self,
        conn: &Connection,
        rows: CopiedRows<'_>,
        mark: &Marked,
    ) -> Result<(), CopyError> {
        let last = rows.last_seq();
        let mut writer = Writer::new(conn, self.numbers(conn)?, 0).map_err(self.broken())?;
        writer.write_marked(&rows.rows, last, (MARK, &text_of(mark))).map_err(self.broken())
    }

    fn put_now(
        &self,
        copy: &str,
        namespace: &Namespace,
        page: u64,
        items: Vec<Item>,
        next: Option<Cursor>,
    ) -> Result<(), CopyError> {
        let conn = self.conn();
        let mut namespaces = self.parts(&conn, copy)?.ok_or_else(|| self.not_this())?;
        let there = namespaces.get(namespace).map_or(0, |part| part.pages);
        if there == page + 1 {
            return Ok(());
        } else if there != page {
            return Err(Refusal::from(CopyRefusal::PageOutOfTurn { there, page }).into());
        }
        let part = Part { pages: page + 1, next: next.map(|next| next.to_string()) };
        namespaces.insert(namespace.clone(), part);
        let mark = Marked::Target { copy: copy.to_owned(), namespaces };
        let last = self.numbers(&conn)?.last_seq;
        let mut rows = CopiedRows::new(namespace, last);
        let there = FolderRows { folder: self, conn: &conn, namespace };
        for item in items {
            if !rows.add(item, &there)? {
                return Err(self.bad_row("what a page belongs to"));
            }
        }
        self.write(&conn, rows, &mark)
    }

    fn begin_now(
        &self,
        copy: &str,
        namespace: &Namespace,
        head: &Head,
    ) -> Result<Begun, CopyError> {
        let conn = self.conn();
        let there = self.parts(&conn, copy)?;
        if there.is_none() {
            let copied = fact(&conn, COPIED).map_err(self.broken())?;
            if copied.as_deref() == Some(copy) {
                return Ok(Begun { whole: true, pages: 0, next: None });
            }
            if let Some(what) = something(&conn).map_err(self.broken())? {
                let folder = self.folder.path();
                return Err(CopyError::no(
                    format!("the store in {folder:?} is not empty: {what}"),
                    "copy to a folder that is not there yet",
                ));
            }
        }
        let mut namespaces = there.unwrap_or_default();
        if let Some(part) = namespaces.get(namespace) {
            let next = part.next.as_deref().map(str::parse).transpose();
            let next = next.map_err(|()| self.bad_row("its mark"))?;
            return Ok(Begun { whole: false, pages: part.pages, next });
        }
        namespaces.insert(namespace.clone(), Part::default());
        let before = row(&conn, namespace, Kind::Meta, "").map_err(self.broken())?;
        let before = before.and_then(|meta| copied::head(&meta)).unwrap_or_default();
        let last = self.numbers(&conn)?.last_seq;
        let mut rows = CopiedRows::new(namespace, last);
        rows.head(&Head {
            fence: head.fence.max(before.fence),
            arrival: head.arrival.max(before.arrival),
            used: head.used.max(before.used),
            ..*head
        });
        self.write(&conn, rows, &Marked::Target { copy: copy.to_owned(), namespaces })?;
        Ok(Begun { whole: false, pages: 0, next: None })
    }

    fn open_now(&self, copy: &str) -> Result<(), CopyError> {
        let mut conn = self.conn();
        if self.parts(&conn, copy)?.is_none() {
            let copied = fact(&conn, COPIED).map_err(self.broken())?;
            // A source without anything is whole as it is.
            let done = copied.is_none() || copied.as_deref() == Some(copy);
            return if done { Ok(()) } else { Err(self.not_this()) };
        }
        let mut open = || {
            let step = conn.transaction()?;
            put_fact(&step, MARK, None)?;
            put_fact(&step, COPIED, Some(copy))?;
            step.commit()
        };
        open().map_err(self.broken())
    }

    fn give_up_now(&self) -> Result<(), CopyError> {
        let mut conn = self.conn();
        match marked(&conn).map_err(self.broken())? {
            Some(Ok(Marked::Target { .. })) => {}
            _ => return Err(self.not_this()),
        }
        let numbers = self.numbers(&conn)?;
        *self.ids.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let mut forget = || {
            let step = conn.transaction()?;
            for table in ["job", "life", "job_error", "row", "resource_data"] {
                step.execute(&format!("DELETE FROM {table}"), [])?;
            }
            let numbers = Numbers { last_seq: NO_JOB, ..numbers };
            put_fact(&step, commit::KEY, Some(&numbers.text()))?;
            put_fact(&step, MARK, None)?;
            step.commit()?;
            conn.execute_batch("VACUUM")
        };
        forget().map_err(self.broken())
    }
}

impl Target for CopyFolder {
    fn found(&self) -> Step<'_, Found> {
        Box::pin(async {
            let conn = self.conn();
            match marked(&conn).map_err(self.broken())? {
                Some(Ok(Marked::Target { copy, .. })) => return Ok(Found::Part(copy)),
                Some(Ok(Marked::Source { to, .. })) => {
                    return Ok(Found::Other(format!("it is frozen, as the source of {to}")));
                }
                Some(Err(_)) => return Err(self.bad_row("its mark")),
                None => {}
            }
            if let Some(copy) = fact(&conn, COPIED).map_err(self.broken())? {
                return Ok(Found::Whole(copy));
            }
            let something = something(&conn).map_err(self.broken())?;
            Ok(something.map_or(Found::Empty, Found::Other))
        })
    }

    fn begin<'a>(
        &'a self,
        copy: &'a str,
        namespace: &'a Namespace,
        head: &'a Head,
    ) -> Step<'a, Begun> {
        Box::pin(async move { self.still_here(self.begin_now(copy, namespace, head)?) })
    }

    fn put<'a>(
        &'a self,
        copy: &'a str,
        namespace: &'a Namespace,
        page: u64,
        items: Vec<Item>,
        next: Option<Cursor>,
    ) -> Step<'a, ()> {
        Box::pin(async move { self.still_here(self.put_now(copy, namespace, page, items, next)?) })
    }

    fn open<'a>(&'a self, copy: &'a str) -> Step<'a, ()> {
        Box::pin(async move { self.still_here(self.open_now(copy)?) })
    }

    fn give_up(&self) -> Step<'_, ()> {
        Box::pin(async { self.still_here(self.give_up_now()?) })
    }
}
