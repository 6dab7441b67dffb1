"""PTC-Lisp in one page: one text for each heading, so that a cut leaves whole ones standing."""

REFERENCE = (
    """\
## Syntax
- Looks like Clojure: every form is a list in parentheses, and its last value is the result
- Keywords name things: `:status`; used as a function, one looks itself up: `(:status order)`
- Maps pair keys with values: `{:id 7 :status :open}`
- Vectors keep an order: `["a" "b" "c"]`
- To call a function, put it first: `(max 3 5)`""",
    """

## Core Functions
- `call` runs a tool, arguments in one map: `(call "tool-name" {:limit 5})`
- `let` names values for the forms inside it: `(let [a 2 b 3] (* a b))`
- `if` chooses between two forms: `(if ready? then-form else-form)`
- `do` runs forms in turn and gives the value of the last: `(do first-form last-form)`
- `fn` makes a function: `(fn [n] (+ n 1))`""",
    """

## Context Access
- `ctx/key` reads what you were given; it never changes
- `memory/key` or `(memory/get :key)` reads what an earlier turn stored
- `(memory/put :key value)` stores a value for the turns to come""",
    """

## Collections
- `map`, `mapv` apply a function to every item, `mapv` giving a vector: `(mapv :title docs)`
- `filter` keeps the items that pass: `(filter #(= (:status %) :open) orders)`
- `reduce` folds all items into one value: `(reduce + 0 prices)`
- `first`, `last`, `nth` pick one item: `(nth rows 2)`
- `count`, `empty?` tell how many items there are, and whether there are none""",
    """

## Common Patterns
```clojure
;; Ask a tool, keep part of the answer
(let [orders (call "list_orders" {:customer ctx/customer_id})]
  (mapv :total orders))

;; Finish one way or the other
(let [open (filter #(= (:status %) :open) ctx/orders)]
  (if (empty? open)
    (fail {:reason :nothing_open :message "Every order is closed"})
    (return {:open (count open)})))

;; Store a step, build the next one on it
(do
  (memory/put :report (call "build_report" {:month "May"}))
  (call "send_report" {:body memory/report}))
```""",
)
