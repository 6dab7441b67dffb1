"""The PTC-Lisp reference: one text per heading, so that truncation keeps complete sections."""

LANGUAGE_REFERENCE = (
    """\
## Syntax
- Reads like Clojure, from which it is taken
- Keywords name things: `:status`; used as a function, one looks itself up: `(:status order)`
- Maps pair keys with values: `{:id 7 :status :open}`
- Vectors keep an order: `["a" "b" "c"]`
- To call a function, put it first and its arguments after it: `(+ 3 5)`""",
    """

## Core Functions
- `call` runs a tool, arguments in one map: `(call "tool-name" {:limit 5})`
- `let` names values for the forms inside it: `(let [a 2 b 3] (* a b))`
- `if` chooses between two forms: `(if ready? then-form else-form)`
- `do` runs forms in turn and gives the value of the last: `(do first-form last-form)`
- `fn` makes a function: `(fn [n] (+ n 1))`""",
    """

## Context Access
- `ctx/key` reads a value you were given
- `memory/key` or `(memory/get :key)` reads a value that was stored
- `(memory/put :key value)` stores a value, for later forms and later turns""",
    """

## Collections
- `map`, `mapv` apply a function to every item, `mapv` giving a vector: `(mapv :title docs)`
- `filter` keeps the items that pass: `(filter #(> (:total %) 100) orders)`
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
(let [large (filter #(> (:total %) 100) ctx/orders)]
  (if (empty? large)
    (fail {:reason :none_large :message "No order is above 100"})
    (return {:large (count large)})))

;; Store a step, build the next one on it
(do
  (memory/put :report (call "build_report" {:month "May"}))
  (call "send_report" {:body memory/report}))
```""",
)
