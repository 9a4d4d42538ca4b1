//! Products that are ready together, as products of matrices where they share factors. A message
//! then has each factor once, however many products it is in, and sums of products are direct
//! results.
//!
//! Which factors are shared, and so which matrices there are, follows from the program and from
//! public values.

use super::columns::{columns, slices, written};
use super::costs;
use super::node::{Components, Form, Word};
use super::steps::{Local, Step};
use mpc::{Bilinear, Cost, Operand, Protocol, Result};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::collections::btree_map::{BTreeMap, Entry};
use std::rc::Rc;

/// Kinds of matrices that are multiplied in one round at most: each is an operation of its own.
const SHAPES: usize = 16;

/// A step by its place.
pub type Placed<'s> = (usize, &'s Step);

/// Factors next to each other.
type Row = Vec<usize>;

/// How long the rows are, how many there are on the left, and on the right.
type Shape = (usize, usize, usize);

/// Sums of products, as one operation. Deliberately without `Debug`: it holds shares.
pub struct Products {
    /// As which map.
    pub map: Bilinear,
    /// The factors on the left.
    pub left: Vec<Components>,
    /// Those on the right.
    pub right: Vec<Components>,
    /// Whether each is multiplied by itself, where each product is one for itself.
    pub is_square: bool,
    /// How many products each step is the sum of, where each is a product for itself.
    pub sums: Vec<usize>,
}

/// All rows of some by all of others, and where the steps are.
struct Table {
    rows: Vec<usize>,
    columns: Vec<usize>,
    steps: Vec<usize>,
}

impl Products {
    /// Steps of which each adds up products of its needs: those of the first half by those of the
    /// second. In which operations they are done, and which steps each does.
    pub fn of(
        steps: &[Placed],
        components: &dyn Fn(&(Word, Form)) -> Components,
    ) -> Vec<(Vec<usize>, Self)> {
        let mut factors = Factors::default();
        let sides: Vec<[usize; 2]> = steps
            .iter()
            .map(|(_, step)| {
                let (left, right) = step.needs.split_at(step.needs.len() / 2);
                [left, right].map(|side| factors.row(side))
            })
            .collect();
        let (tables, alone) = factors.tables(&sides);
        let mut shapes: BTreeMap<Shape, Vec<Table>> = BTreeMap::new();
        for table in tables {
            let shape = (
                factors.rows[table.rows[0]].len(),
                table.rows.len(),
                table.columns.len(),
            );
            shapes.entry(shape).or_default().push(table);
        }
        // Where the least is saved, each product is one for itself.
        let saved = |((k, m, n), tables): &(Shape, Vec<Table>)| {
            tables.len() * (k * (2 * m * n - m - n) + (k - 1) * m * n)
        };
        let mut shapes: Vec<(Shape, Vec<Table>)> = shapes.into_iter().collect();
        shapes.sort_by_key(|shape| Reverse(saved(shape)));
        let saving = shapes.iter().filter(|shape| saved(shape) > 0).count();
        let rest = shapes.split_off(saving.min(SHAPES));
        let mut operations = Vec::new();
        let of = |at: &usize| components(&factors.all[*at]);
        for ((k, m, n), tables) in shapes {
            let row = |at: &usize| factors.rows[*at].iter().map(of);
            let left = tables
                .iter()
                .flat_map(|table| table.rows.iter().flat_map(row));
            let mut right = Vec::new();
            for table in &tables {
                let columns: Vec<&Row> =
                    table.columns.iter().map(|at| &factors.rows[*at]).collect();
                right.extend(
                    (0..k).flat_map(|place| columns.iter().map(move |column| column[place])),
                );
            }
            let done = tables.iter().flat_map(|table| &table.steps);
            operations.push((
                done.map(|at| steps[*at].0).collect(),
                Self {
                    map: Bilinear::Matrix {
                        batch: tables.len(),
                        m,
                        k,
                        n,
                    },
                    left: left.collect(),
                    right: right.iter().map(of).collect(),
                    is_square: false,
                    sums: Vec::new(),
                },
            ));
        }
        let rest = rest.into_iter().flat_map(|(_, tables)| tables);
        let mut alone: Vec<usize> = alone
            .into_iter()
            .chain(rest.flat_map(|table| table.steps))
            .collect();
        alone.sort_unstable();
        if !alone.is_empty() {
            let side = |side: usize| {
                let rows = alone.iter().flat_map(|at| &factors.rows[sides[*at][side]]);
                rows.map(of).collect::<Vec<Components>>()
            };
            let (left, right) = (side(0), side(1));
            let sums = alone.iter().map(|at| factors.rows[sides[*at][0]].len());
            let operation = Self {
                map: Bilinear::Elementwise { n: left.len() },
                is_square: alone.iter().all(|at| sides[*at][0] == sides[*at][1]),
                sums: sums.collect(),
                left,
                right,
            };
            operations.push((alone.iter().map(|at| steps[*at].0).collect(), operation));
        }
        operations
    }

    /// What they cost.
    #[must_use]
    pub fn cost(&self, protocol: &dyn Protocol) -> Cost {
        costs::of_products(protocol, &self.map)
    }

    /// The components of what each step computes.
    ///
    /// # Errors
    /// What the links meet.
    pub fn carry_out(self, protocol: &mut dyn Protocol) -> Result<Vec<Components>> {
        let [x, y] = [self.left, self.right].map(|side| columns(protocol, &side));
        let (_, _, n) = self.map.lengths();
        let results = written(protocol, n, |protocol, out| {
            let (x, y) = (slices(&x), slices(&y));
            protocol.bilinear(&self.map, Operand::once(&x), Operand::once(&y), None, out)
        })?;
        if self.sums.is_empty() {
            return Ok(results);
        }
        let mut results = results.into_iter();
        let sums = self.sums.into_iter().map(|count| {
            let products = results.by_ref().take(count);
            products.fold(Components::default(), |sum, product| {
                Local::Add.on(&[sum, product])
            })
        });
        Ok(sums.collect())
    }
}

/// Factors, and rows of them, in the order in which they come.
#[derive(Default)]
struct Factors {
    all: Vec<(Word, Form)>,
    known: HashMap<(bool, u64), usize>,
    rows: Vec<Row>,
    known_rows: HashMap<Row, usize>,
    /// How often each row is multiplied.
    uses: Vec<usize>,
}

impl Factors {
    fn row(&mut self, side: &[(Word, Form)]) -> usize {
        let row: Row = side.iter().map(|need| self.factor(need)).collect();
        let next = self.rows.len();
        let at = *self.known_rows.entry(row).or_insert_with_key(|row| {
            self.rows.push(row.clone());
            self.uses.push(0);
            next
        });
        self.uses[at] += 1;
        at
    }

    fn factor(&mut self, need: &(Word, Form)) -> usize {
        let key = match &need.0 {
            Word::Public(value) => (true, *value),
            Word::Secret(node) => (false, Rc::as_ptr(node) as usize as u64),
        };
        let next = self.all.len();
        *self.known.entry(key).or_insert_with(|| {
            self.all.push(need.clone());
            next
        })
    }

    /// Tables of which each saves something, and the steps that are in none.
    fn tables(&self, sides: &[[usize; 2]]) -> (Vec<Table>, Vec<usize>) {
        let mut alone = Vec::new();
        // For each row, its columns; those that are used more often are the rows.
        let mut lines: Vec<(usize, BTreeMap<usize, usize>)> = Vec::new();
        let mut known: HashMap<usize, usize> = HashMap::new();
        for (at, &[x, y]) in sides.iter().enumerate() {
            if self.rows[x].len() == 1 && self.uses[x] == 1 && self.uses[y] == 1 {
                alone.push(at);
                continue;
            }
            let (row, column) = if self.uses[y] > self.uses[x] {
                (y, x)
            } else {
                (x, y)
            };
            let line = *known.entry(row).or_insert(lines.len());
            if line == lines.len() {
                lines.push((row, BTreeMap::new()));
            }
            match lines[line].1.entry(column) {
                Entry::Vacant(place) => {
                    place.insert(at);
                }
                // Twice the same.
                Entry::Occupied(_) => alone.push(at),
            }
        }
        let mut tables: Vec<Table> = Vec::new();
        let mut known: HashMap<Vec<usize>, usize> = HashMap::new();
        for (row, line) in lines {
            let (columns, steps): (Vec<usize>, Vec<usize>) = line.into_iter().unzip();
            let at = *known.entry(columns).or_insert_with_key(|columns| {
                tables.push(Table {
                    rows: Vec::new(),
                    columns: columns.clone(),
                    steps: Vec::new(),
                });
                tables.len() - 1
            });
            tables[at].rows.push(row);
            tables[at].steps.extend(steps);
        }
        (tables, alone)
    }
}
