(call_expression function: (_) @call)
(argument_list (identifier) @value)
(init_declarator value: (identifier) @value)
(initializer_pair value: (identifier) @value)
(type_identifier) @type
(parameter_declaration type: (_) @as declarator: [(identifier) @name (pointer_declarator declarator: (identifier) @name)])
(declaration type: (_) @as declarator: [(identifier) @name (init_declarator declarator: (identifier) @name)])
(declaration type: (_) @as declarator: [(pointer_declarator declarator: (identifier) @name) (init_declarator declarator: (pointer_declarator declarator: (identifier) @name))])
(field_declaration type: (_) @as declarator: [(field_identifier) @field (pointer_declarator declarator: (field_identifier) @field)])
(function_definition type: (_) @returns)
(preproc_include) @import
[(function_definition) (struct_specifier) (union_specifier) (enum_specifier) (type_definition) (preproc_function_def)] @definition
