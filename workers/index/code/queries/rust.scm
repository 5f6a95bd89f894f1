(call_expression function: [(identifier) (scoped_identifier) (field_expression)] @call)
(call_expression function: (generic_function function: [(identifier) (scoped_identifier) (field_expression)] @call))
(macro_invocation macro: [(identifier) (scoped_identifier)] @call)
(struct_expression name: [(type_identifier) (scoped_type_identifier)] @call)
(arguments [(identifier) (scoped_identifier)] @value)
(field_initializer value: (identifier) @value)
(impl_item trait: (_) @base)
(trait_bounds [(type_identifier) (scoped_type_identifier) (generic_type)] @base)
[(type_identifier) (scoped_type_identifier)] @type
(parameter pattern: (identifier) @name type: (_) @as)
(let_declaration pattern: (identifier) @name type: (_) @as)
(let_declaration pattern: (identifier) @name value: [(call_expression) (struct_expression) (try_expression (call_expression)) (await_expression)] @from)
(field_declaration name: (field_identifier) @field type: (_) @as)
(function_item return_type: (_) @returns)
(use_declaration) @import
(mod_item !body) @import
[(function_item) (function_signature_item) (struct_item) (enum_item) (union_item) (trait_item)] @definition
[(type_item) (macro_definition) (impl_item) (mod_item)] @definition
[(source_file (attribute_item) @decorator) (declaration_list (attribute_item) @decorator) (block (attribute_item) @decorator)]
