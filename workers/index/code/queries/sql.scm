(relation (object_reference) @call)
(invocation (object_reference) @call)
(column_definition (object_reference) @call)
(constraint (object_reference) @call)
(insert (object_reference) @call)
(update (relation (object_reference) @call))
(alter_table (object_reference) @call)
(create_index (object_reference) @call)
(create_trigger (object_reference) @call)
[(create_table) (create_view) (create_materialized_view) (create_function) (create_index) (create_trigger)] @definition
[(create_type) (create_sequence)] @definition
